//! Changes whose effect can be predicted: a closed list.
//!
//! Each says what it needs of a profile, and gives an error that names what to record where that is
//! missing.

use std::fmt;

use smbscope_tables::profile::{CacheOption, Profile};
use smbscope_tables::protection::Protection;
use smbscope_tables::slice::Kind;

use super::plan::{Plan, Replication};

/// Light in fibre, km/s.
const FIBRE_KM_S: f64 = 200_000.0;

/// Slices that faster storage shortens.
const STORAGE: &[Kind] = &[Kind::Filesystem, Kind::Io, Kind::Flush];
/// Slices that faster processors shorten.
const COMPUTED: &[Kind] =
    &[Kind::CryptoIn, Kind::Parse, Kind::Processing, Kind::CryptoOut, Kind::Send];

/// What so much fibre adds to the round trip, s.
fn farther_s(km: f64) -> f64 {
    2.0 * km / FIBRE_KM_S
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The round trip is this, s.
    Rtt(f64),
    /// So many kilometres of fibre are added between client and server.
    Distance(f64),
    /// Each client's line carries so many bits in a second.
    Bandwidth(f64),
    /// Receivers announce a TCP window of so many bytes.
    Window(f64),
    /// This share of packets is lost.
    Loss(f64),
    /// Reads and writes that continue each other are made in blocks of so many bytes.
    Block(u64),
    /// The same of reads alone.
    ReadBlock(u64),
    /// The same of writes alone.
    WriteBlock(u64),
    /// The file system is so many times as fast.
    Filesystem(f64),
    /// What the server computes is done so many times as fast.
    Cpu(f64),
    /// Requests wait in the server's queue this share of the time that they do now.
    Queue(f64),
    /// So many users do what those do that were recorded.
    Users(f64),
    /// What clients keep of directories.
    Cache(CacheOption),
    /// Reads and writes that continue each other are under way so many at once.
    Depth(usize),
    /// Requests that follow each other on one open go as one compound, or each as its own message.
    Compound(bool),
    /// So many connections for each session.
    Channels(usize),
    /// All writes are stable when they are answered, or none is for its own sake.
    WriteThrough(bool),
    /// All messages are signed like this, or none.
    Signing(Protection),
    /// All messages are encrypted like this, or none.
    Encryption(Protection),
    /// The server has this share of reads in memory.
    CacheHit(f64),
    /// A second server that keeps the same.
    Replication(Replication),
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
pub const SPECS: [Spec; 22] = [
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
        name: "bandwidth",
        example: "bandwidth=45mbit",
        meaning: "each client's line carries so much each way, shared by its connections",
        needs: "the sizes of messages, which a recording has",
    },
    Spec {
        name: "window",
        example: "window=64240",
        meaning: "client and server take no more than so many bytes of a connection at once (TCP's \
                  receive window)",
        needs: "the sizes of messages, which a recording has",
    },
    Spec {
        name: "loss",
        example: "loss=0.1%",
        meaning: "the line loses this share of the packets, each independently",
        needs: "the sizes of messages, which a recording has",
    },
    Spec {
        name: "block",
        example: "block=1MiB",
        meaning: "reads and writes that continue each other are made in blocks of this size",
        needs: "reads and writes of several sizes, with offsets and opens: what a request costs and what \
                a byte costs",
    },
    Spec {
        name: "max-read",
        example: "max-read=1MiB",
        meaning: "the same of reads alone: what the server lets a client read at once (MaxReadSize)",
        needs: "reads of several sizes, with offsets and opens",
    },
    Spec {
        name: "max-write",
        example: "max-write=1MiB",
        meaning: "the same of writes alone (MaxWriteSize)",
        needs: "writes of several sizes, with offsets and opens",
    },
    Spec {
        name: "filesystem",
        example: "filesystem=4x",
        meaning: "the server's file system answers so many times as fast (0.5x: it takes twice as long)",
        needs: "the slice filesystem, io or flush of the server (smbscope record)",
    },
    Spec {
        name: "cpu",
        example: "cpu=2x",
        meaning: "the server's processors are so many times as fast, and carry so many more users",
        needs: "the slice processing of the server (smbscope record)",
    },
    Spec {
        name: "queue",
        example: "queue=0%",
        meaning: "requests wait before the server takes them up only this share of the time of today",
        needs: "the slice queue of the server (smbscope record)",
    },
    Spec {
        name: "users",
        example: "users=2300",
        meaning: "so many users do what those do that were recorded, each as often",
        needs: "a load run with counters of the server (its own machine, or --metrics): how long its \
                processors and disks are busy for a scenario",
    },
    Spec {
        name: "dircache",
        example: "dircache=collapse",
        meaning: "a client opens a directory once for all of its applications that look at it within ten \
                  seconds",
        needs: "names of files and folders: Creates in clear, with paths",
    },
    Spec {
        name: "dirlease",
        example: "dirlease",
        meaning: "clients keep directories under leases (SMB 3): opens, listings and attributes come from \
                  memory until somebody changes them",
        needs: "names of files and folders: Creates in clear, with paths",
    },
    Spec {
        name: "depth",
        example: "depth=8",
        meaning: "reads and writes that continue each other on one open are under way so many at once",
        needs: "reads and writes with offsets and opens",
    },
    Spec {
        name: "compound",
        example: "compound=on",
        meaning: "requests that follow each other at once on one open go as one compound (off: each \
                  member is a message of its own)",
        needs: "requests with opens",
    },
    Spec {
        name: "channels",
        example: "channels=4",
        meaning: "each session spreads its requests over so many connections (multichannel), each with \
                  TCP windows of its own",
        needs: "the sizes of messages, which a recording has",
    },
    Spec {
        name: "write-through",
        example: "write-through=on",
        meaning: "every write is on stable storage when it is answered (off: only what a Flush asks for)",
        needs: "ten or more Flushes of what was written, or the slice flush of as many writes that were \
                write-through (what it costs to make something stable)",
    },
    Spec {
        name: "replication",
        example: "replication=sync,rtt=5ms,bandwidth=1gbit",
        meaning: "a second server keeps the same: what must be stable waits for it (sync), or follows \
                  later (async: how much would be lost)",
        needs: "writes, and for sync Flushes or writes that were write-through",
    },
    Spec {
        name: "cache-hit",
        example: "cache-hit=90%",
        meaning: "the server has this share of what is read in memory",
        needs: "the slices filesystem and io of reads (smbscope record), ten or more of them from memory and as \
                many from storage, which takes four times as long at least",
    },
    Spec {
        name: "signing",
        example: "signing=aes-gmac",
        meaning: "all messages are signed by this algorithm (hmac-sha256, aes-cmac, aes-gmac), or none is (off)",
        needs: "what it and the one of today cost (--calibration FILE of `smbscope predict calibrate`); to turn it \
                off the slices crypto_in or crypto_out of the server do as well",
    },
    Spec {
        name: "encryption",
        example: "encryption=aes-128-gcm",
        meaning: "all messages are encrypted by this cipher (aes-128-ccm, aes-128-gcm, aes-256-ccm, aes-256-gcm), \
                  or none is (off)",
        needs: "what it and the one of today cost (--calibration FILE of `smbscope predict calibrate`); to turn it \
                off the slices crypto_in or crypto_out of the server do as well",
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

/// As it is written: `max-read=1MiB`.
impl fmt::Display for Change {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        match *self {
            // To the nanosecond, and no digits of the double beyond.
            Change::Rtt(seconds) => write!(to, "{name}={}us", (1e9 * seconds).round() / 1e3),
            Change::Distance(km) => write!(to, "{name}={km}km"),
            Change::Bandwidth(bits) => write!(to, "{name}={bits:.0}bit"),
            Change::Window(bytes) => write!(to, "{name}={bytes:.0}"),
            Change::Block(bytes) | Change::ReadBlock(bytes) | Change::WriteBlock(bytes) => {
                let units = [(1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
                let whole = units.into_iter().find(|(unit, _)| bytes % unit == 0);
                let (unit, word) = whole.unwrap_or((1, "B"));
                write!(to, "{name}={}{word}", bytes / unit)
            }
            Change::Filesystem(times) | Change::Cpu(times) => write!(to, "{name}={times}x"),
            Change::Queue(share) | Change::CacheHit(share) | Change::Loss(share) => {
                write!(to, "{name}={}%", (1e9 * share).round() / 1e7)
            }
            Change::Users(users) => write!(to, "{name}={users}"),
            Change::Cache(CacheOption::DirLease) => to.write_str(name),
            Change::Cache(_) => write!(to, "{name}=collapse"),
            Change::Depth(number) | Change::Channels(number) => write!(to, "{name}={number}"),
            Change::Compound(is_on) | Change::WriteThrough(is_on) => {
                write!(to, "{name}={}", on(is_on))
            }
            Change::Signing(way) | Change::Encryption(way) => write!(to, "{name}={}", way.name()),
            Change::Replication(one) => {
                let kind = if one.is_sync { "sync" } else { "async" };
                write!(to, "{name}={kind},rtt={}ns", one.rtt_ns)?;
                match one.bandwidth_bits {
                    Some(bits) => write!(to, ",bandwidth={bits:.0}bit"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Change {
    /// The word before `=`.
    pub fn name(&self) -> &'static str {
        match self {
            Change::Rtt(_) => "rtt",
            Change::Distance(_) => "distance",
            Change::Bandwidth(_) => "bandwidth",
            Change::Window(_) => "window",
            Change::Loss(_) => "loss",
            Change::Block(_) => "block",
            Change::ReadBlock(_) => "max-read",
            Change::WriteBlock(_) => "max-write",
            Change::Filesystem(_) => "filesystem",
            Change::Cpu(_) => "cpu",
            Change::Queue(_) => "queue",
            Change::Users(_) => "users",
            Change::Cache(CacheOption::DirLease) => "dirlease",
            Change::Cache(_) => "dircache",
            Change::Depth(_) => "depth",
            Change::Compound(_) => "compound",
            Change::Channels(_) => "channels",
            Change::WriteThrough(_) => "write-through",
            Change::Replication(_) => "replication",
            Change::CacheHit(_) => "cache-hit",
            Change::Signing(_) => "signing",
            Change::Encryption(_) => "encryption",
        }
    }

    /// What it needs of a recording.
    fn needs(&self) -> &'static str {
        SPECS.iter().find(|spec| spec.name == self.name()).map_or("", |spec| spec.needs)
    }

    /// Slices of the server's time that it changes, and which share of their time is left.
    pub fn slices(&self) -> Option<(&'static [Kind], f64)> {
        match *self {
            Change::Filesystem(times) => Some((STORAGE, 1.0 / times)),
            Change::Cpu(times) => Some((COMPUTED, 1.0 / times)),
            Change::Queue(share) => Some((&[Kind::Queue], share)),
            _ => None,
        }
    }

    /// Changes the profile.
    pub fn apply(&self, profile: &mut Profile) -> Result<(), Lacking> {
        match *self {
            Change::Rtt(seconds) => profile.rtt_s = seconds,
            Change::Distance(km) => profile.rtt_s += farther_s(km),
            Change::Bandwidth(_)
            | Change::Window(_)
            | Change::Loss(_)
            | Change::Block(_)
            | Change::ReadBlock(_)
            | Change::WriteBlock(_)
            | Change::Users(_)
            | Change::Depth(_)
            | Change::Compound(_)
            | Change::Channels(_)
            | Change::WriteThrough(_)
            | Change::Replication(_)
            | Change::CacheHit(_)
            | Change::Signing(_)
            | Change::Encryption(_) => return Err(self.lacking()),
            Change::Filesystem(_) | Change::Cpu(_) | Change::Queue(_) => self.scale(profile)?,
            Change::Cache(option) => {
                for scenario in &mut profile.scenarios {
                    scenario.variants.retain(|variant| variant.option == option);
                }
                if profile.scenarios.iter().any(|scenario| scenario.variants.is_empty()) {
                    return Err(self.lacking());
                }
            }
        }
        Ok(())
    }

    /// Adds it to a plan for recorded operations. That the recording has the slices is seen when it
    /// was replayed.
    pub fn plan(&self, plan: &mut Plan) {
        match *self {
            Change::Rtt(seconds) => (plan.rtt_s, plan.farther_s) = (Some(seconds), 0.0),
            Change::Distance(km) => plan.farther_s += farther_s(km),
            Change::Bandwidth(bits) => plan.bandwidth_bits = Some(bits),
            Change::Window(bytes) => plan.window_bytes = Some(bytes),
            Change::Loss(share) => plan.loss = share,
            Change::Block(bytes) => {
                (plan.read_block, plan.write_block) = (Some(bytes), Some(bytes));
            }
            Change::ReadBlock(bytes) => plan.read_block = Some(bytes),
            Change::WriteBlock(bytes) => plan.write_block = Some(bytes),
            Change::Filesystem(_) | Change::Cpu(_) | Change::Queue(_) => {
                let (kinds, share) = self.slices().unwrap_or_default();
                kinds.iter().for_each(|kind| plan.slices[*kind as usize] *= share);
                if let Change::Cpu(_) = self {
                    plan.processors *= share;
                }
            }
            Change::Users(users) => plan.users = Some(users),
            Change::Cache(option) => plan.cache = Some(option),
            Change::Depth(depth) => plan.depth = Some(depth),
            Change::Compound(is_on) => plan.compound = Some(is_on),
            Change::Channels(channels) => plan.channels = channels,
            Change::WriteThrough(is_on) => plan.write_through = Some(is_on),
            Change::CacheHit(share) => plan.cache_hit = Some(share),
            Change::Signing(way) => plan.signing = Some(way),
            Change::Encryption(way) => plan.encryption = Some(way),
            Change::Replication(replication) => plan.replication = Some(replication),
        }
    }

    /// What is said where something is missing.
    pub fn lacking(&self) -> Lacking {
        Lacking { change: self.name(), what: self.needs() }
    }

    fn scale(&self, profile: &mut Profile) -> Result<(), Lacking> {
        let (kinds, share) = self.slices().unwrap_or_default();
        let costs = profile.commands.iter_mut().flat_map(|command| {
            std::iter::once(&mut command.cost)
                .chain(command.sizes.iter_mut().map(|size| &mut size.cost))
        });
        let parts = costs.flat_map(|cost| &mut cost.parts);
        let mut is_there = false;
        for part in parts.filter(|part| part.part.is_some_and(|kind| kinds.contains(&kind))) {
            is_there = true;
            part.scale(share);
        }
        if is_there { Ok(()) } else { Err(self.lacking()) }
    }

    /// The assumptions of changes, each once.
    pub fn assumptions(changes: &[Change]) -> Vec<&'static str> {
        let mut said = Vec::new();
        for assumption in changes.iter().map(Change::assumption) {
            if !said.contains(&assumption) {
                said.push(assumption);
            }
        }
        said
    }

    /// What is taken for granted, in a sentence.
    pub fn assumption(&self) -> &'static str {
        match self {
            Change::Rtt(_) | Change::Distance(_) => {
                "What a client sends next follows from the last reply that it had, and takes it the time \
                 that it took."
            }
            Change::Bandwidth(_) => {
                "All connections from one client address share one line, of which nobody else has a \
                 part; what bytes took today from the first to the last was the line's. What waited for others' \
                 bytes still does: of a faster line the gain is at least this."
            }
            Change::Block(_) | Change::ReadBlock(_) | Change::WriteBlock(_) => {
                "A larger block is read or written wherever pieces continued each other within 10 ms; a \
                 smaller one is several requests, one after the other."
            }
            Change::Users(_) => {
                "All users do the same on average, and requests wait for the server's busiest resource and its \
                 processors as for queues with random arrivals, as long as it was seen when recorded: no lock and no \
                 single thread is the limit."
            }
            Change::Window(_) => {
                "Neither side's window was smaller than that when it was recorded."
            }
            Change::Loss(_) => {
                "Nothing was lost when it was recorded; TCP's window is what losses so far apart leave of it on \
                 average."
            }
            Change::Filesystem(_) | Change::Cpu(_) => {
                "Queues stay as long as they are, although a faster server has shorter ones: the gain \
                 is at least this."
            }
            Change::Queue(_) => "Everything else stays as long as it is.",
            Change::Depth(_) => {
                "Requests side by side share the line's distance; the server serves those of one open one \
                 after the other."
            }
            Change::Compound(true) => {
                "A request that came within a millisecond after a reply on the same open did not need \
                 that reply, only the open."
            }
            Change::Compound(false) => "A member costs the server what it costs in a compound.",
            Change::Channels(_) => {
                "All channels take the same way, and one process or thread of the server serves them, \
                 as today."
            }
            Change::WriteThrough(_) => {
                "Making bytes stable costs a write what it cost those that were recorded; storage does not \
                 slow down because it is asked more often."
            }
            Change::Signing(_) | Change::Encryption(_) => {
                "Server and client pay for a message and its bytes what was measured where the server was \
                 calibrated, one after the other. How much longer requests wait for its processors is told of load \
                 runs with counters only."
            }
            Change::CacheHit(_) => {
                "A read whose file-system time is of the short kind was in memory, and takes the median of that \
                 kind or of the other one."
            }
            Change::Replication(one) if one.is_sync => {
                "The second server's log takes as long as the local one, both begin at once, and what need \
                 not be stable goes over the same line."
            }
            Change::Replication(_) => "No answer waits for the second server.",
            Change::Cache(_) => {
                "The operations that stay cost what they cost now; who takes a lease away by a change does \
                 not wait for it."
            }
        }
    }
}
