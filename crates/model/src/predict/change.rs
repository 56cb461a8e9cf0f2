//! Changes whose effect can be predicted: a closed list.
//!
//! Each says what it needs of a profile, and gives an error that names what to record where that is
//! missing.

use smbscope_event::profile::{CacheOption, Profile};
use smbscope_event::slice::Kind;

/// Light in fibre, km/s.
const FIBRE_KM_S: f64 = 200_000.0;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The round trip is this, s.
    Rtt(f64),
    /// So many kilometres of fibre are added between client and server.
    Distance(f64),
    /// The file system is so many times as fast.
    Filesystem(f64),
    /// What the server computes is done so many times as fast.
    Cpu(f64),
    /// Requests wait in the server's queue this share of the time that they do now.
    Queue(f64),
    /// What clients keep of directories.
    Cache(CacheOption),
}

/// What a change is called, how it is written, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The word before `=`.
    pub name: &'static str,
    /// The whole, with a value.
    pub example: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// What a recording must have.
    pub needs: &'static str,
}

/// All changes.
pub const SPECS: [Spec; 7] = [
    Spec {
        name: "rtt",
        example: "rtt=20ms",
        meaning: "the round trip between clients and server is this (both ways together)",
        needs: "the round trip of today",
    },
    Spec {
        name: "distance",
        example: "distance=2795km",
        meaning: "so much fibre more lies between clients and server: 200,000 km/s, both ways",
        needs: "the round trip of today",
    },
    Spec {
        name: "filesystem",
        example: "filesystem=4x",
        meaning: "the server's file system answers so many times as fast (0.5x: it takes twice as long)",
        needs: "the slice filesystem",
    },
    Spec {
        name: "cpu",
        example: "cpu=2x",
        meaning: "the server's processors are so many times as fast",
        needs: "the slice processing",
    },
    Spec {
        name: "queue",
        example: "queue=0%",
        meaning: "requests wait before the server takes them up only this share of the time of today",
        needs: "the slice queue",
    },
    Spec {
        name: "dircache",
        example: "dircache=collapse",
        meaning: "a client opens a directory once for all of its applications that look at it within ten \
                  seconds",
        needs: "what that takes away from each scenario",
    },
    Spec {
        name: "dirlease",
        example: "dirlease",
        meaning: "clients keep directories under leases (SMB 3): opens, listings and attributes come from \
                  memory until somebody changes them",
        needs: "what that takes away from each scenario",
    },
];

/// What a change needs and a profile has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// The change's name.
    pub change: &'static str,
    /// What is missing.
    pub what: &'static str,
}

impl Change {
    /// Its place in [`SPECS`].
    pub fn spec(&self) -> &'static Spec {
        let place = match self {
            Change::Rtt(_) => 0,
            Change::Distance(_) => 1,
            Change::Filesystem(_) => 2,
            Change::Cpu(_) => 3,
            Change::Queue(_) => 4,
            Change::Cache(CacheOption::DirLease) => 6,
            Change::Cache(_) => 5,
        };
        &SPECS[place]
    }

    /// Changes the profile.
    pub fn apply(&self, profile: &mut Profile) -> Result<(), Lacking> {
        match *self {
            Change::Rtt(seconds) => profile.rtt_s = seconds,
            Change::Distance(km) => profile.rtt_s += 2.0 * km / FIBRE_KM_S,
            Change::Filesystem(times) => self.scale(profile, Kind::Filesystem, 1.0 / times)?,
            Change::Cpu(times) => self.scale(profile, Kind::Processing, 1.0 / times)?,
            Change::Queue(share) => self.scale(profile, Kind::Queue, share)?,
            Change::Cache(option) => {
                for scenario in &mut profile.scenarios {
                    scenario.variants.retain(|variant| variant.option == option);
                }
                if profile.scenarios.iter().any(|scenario| scenario.variants.is_empty()) {
                    return Err(Lacking { change: self.spec().name, what: self.spec().needs });
                }
            }
        }
        Ok(())
    }

    fn scale(&self, profile: &mut Profile, kind: Kind, factor: f64) -> Result<(), Lacking> {
        let parts = profile.commands.iter_mut().flat_map(|command| &mut command.parts);
        let mut is_there = false;
        for part in parts.filter(|part| part.kind == kind) {
            is_there = true;
            part.mean_s *= factor;
            part.stddev_s *= factor;
            part.p95_s *= factor;
        }
        match is_there {
            true => Ok(()),
            false => Err(Lacking { change: self.spec().name, what: self.spec().needs }),
        }
    }

    /// What is taken for granted, in a sentence.
    pub fn assumption(&self) -> &'static str {
        match self {
            Change::Rtt(_) | Change::Distance(_) => {
                "An operation waits for the one before, and a message needs no further round trip of \
                 TCP: windows are open and nothing is lost."
            }
            Change::Filesystem(_) | Change::Cpu(_) => {
                "Queues stay as long as they are, although a faster server has shorter ones: the gain \
                 is at least this."
            }
            Change::Queue(_) => "Everything else stays as long as it is.",
            Change::Cache(_) => {
                "The operations that stay cost what they cost now, and clients give no lease back \
                 while they work."
            }
        }
    }
}
