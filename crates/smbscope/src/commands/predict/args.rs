//! What `smbscope predict` is told, and changes as people write them.

use std::ffi::OsString;
use std::path::PathBuf;

use smbscope_analysis::predict::changes::{Change, SPECS};
use smbscope_analysis::predict::plan::Replication;
use smbscope_analysis::predict::replay::{CHANNELS_MAX, DEPTH_MAX};
use smbscope_tables::profile::CacheOption;
use smbscope_tables::protection::Protection;
use smbscope_tables::quantity::{
    parse_distance, parse_duration, parse_rate, parse_share, parse_size,
};

use super::forecast::Asked;
use crate::format::{RowFormat, TextFormat};
use crate::options::Reading;

/// Predict what a change would bring.
///
/// From recordings (captures, datasets, run folders): the recorded operations are gone through once
/// more as they would have gone with the change. What a client sent next, it sent because of the last
/// reply that it had; an operation takes what it took, less what the line and the changed slices of
/// the server cost, plus what they cost then. Before and after are given by command, by scenario of
/// a load run, and in total. Without a change it shows what times are made of today.
///
/// From a profile: means alone, of one's own recordings (--save-profile), or `published`, the model of Lovinger and Kruse (SDC 2010) for home directories: the
/// means of a reference server under 2,250 users, with SMB 2.1, with collapsed opens of directories
/// and with directory leases. It gives the published table, the time that a user spends in an hour
/// on each scenario, and the same for any other network or server.
///
/// Changes apply one after the other, in the order in which they are given.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    subcommand_help_heading = "Instead of a prediction",
    disable_help_subcommand = true
)]
#[command(after_help = "\
Examples:
  smbscope predict run/ --change rtt=20ms
  smbscope predict capture.pcapng --change distance=2795km --change bandwidth=45mbit
  smbscope predict recording/ --change filesystem=4x --format json
  smbscope predict recording/ --detail
  smbscope predict run/ --save-profile server.json
  smbscope predict --profile server.json --change rtt=20ms
  smbscope predict --profile published --change rtt=20ms
  smbscope predict --profile published --change dirlease
  smbscope predict calibrate --out crypto.json
  smbscope predict run/ --change signing=aes-gmac --calibration crypto.json
  smbscope predict --list")]
pub struct Predict {
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Capture files, datasets or run folders to predict from, or `-` for a capture on standard input.
    #[arg(value_name = "INPUT", required_unless_present_any = ["profile", "list"])]
    pub inputs: Vec<String>,
    /// Predict from this profile instead: published, published-means (the published means alone, within
    /// 4.3 % of the published results), or a file of --save-profile.
    #[arg(long, value_name = "PROFILE", conflicts_with = "inputs")]
    pub profile: Option<Named>,
    #[command(flatten)]
    pub asked: Asked,
    /// Show the distribution of each part of the time, by command and size.
    #[arg(long, conflicts_with_all = ["profile", "changes", "list"])]
    pub detail: bool,
    /// Write what the recording comes down to, as a profile: what an operation costs by command and
    /// size, and what scenarios need. It holds no names of files, users or machines.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["profile", "changes", "list"])]
    pub save_profile: Option<PathBuf>,
    /// List the changes that can be predicted.
    #[arg(long, conflicts_with_all = ["inputs", "profile", "changes"])]
    pub list: bool,
    /// Form of the output; json is one object per line: what it is of, seconds before and after, and
    /// their parts.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: RowFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How inputs are read.
    #[command(flatten)]
    pub reading: Reading,
}

/// What predictions need besides.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    Calibrate(Calibrate),
}

/// Measure what signing and encryption cost on this machine.
///
/// To be run on the server: a private Samba is started with the Samba that is installed, and so with its own
/// crypto library. A client on this machine asks, reads and writes, signed and encrypted in every way in turn.
/// What operations take longer than with plain messages is told, at the server and at the client: for each
/// message, and for each byte of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope predict calibrate --out crypto.json
  smbscope predict run/ --change encryption=aes-128-gcm --calibration crypto.json")]
pub struct Calibrate {
    /// smbd, or a folder with bin/smbd or sbin/smbd in it; the system's without.
    #[arg(long, value_name = "PATH")]
    pub samba: Option<PathBuf>,
    /// For how long, s; every way is measured three times at least.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Write what was measured to this file, for --calibration.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Form of what goes to standard output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Where a profile comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The published model, with one constant for each command that is fitted to its results.
    Published,
    /// The published means alone.
    PublishedMeans,
    /// A file.
    File(PathBuf),
}

impl From<OsString> for Named {
    fn from(text: OsString) -> Named {
        match text.to_str() {
            Some("published") => Named::Published,
            Some("published-means") => Named::PublishedMeans,
            _ => Named::File(text.into()),
        }
    }
}

/// Most that a read or write may move (16 bits of credits, 64 KiB each, are never granted in practice).
const MAX_BLOCK: u64 = 16 << 20;

/// Reads `rtt=20ms` and the like.
pub fn change(text: &str) -> Result<Change, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (text.trim(), None),
    };
    let Some(spec) = SPECS.iter().find(|spec| spec.name == name) else {
        let names: Vec<_> = SPECS.iter().map(|spec| spec.name).collect();
        return Err(format!("there is no such change; there are {}", names.join(", ")));
    };
    let wrong = |why: String| format!("{why}; write for example {}", spec.example);
    match (name, value) {
        ("dirlease", None) => Ok(Change::Cache(CacheOption::DirLease)),
        ("dirlease", Some(_)) => Err(wrong("it takes no value".to_owned())),
        (_, None) => Err(wrong("it takes a value".to_owned())),
        ("dircache", Some("collapse")) => Ok(Change::Cache(CacheOption::DirCache)),
        ("dircache", Some(other)) => Err(wrong(format!("{other} is not known"))),
        ("rtt", Some(value)) => {
            let ns = parse_duration(value).map_err(|error| error.to_string())?;
            Ok(Change::Rtt(ns as f64 / 1e9))
        }
        ("distance", Some(value)) => {
            let metres = parse_distance(value).map_err(|error| error.to_string())?;
            Ok(Change::Distance(metres as f64 / 1e3))
        }
        ("bandwidth", Some(value)) => {
            let bits = parse_rate(value).map_err(|error| error.to_string())?;
            Ok(Change::Bandwidth(bits as f64))
        }
        ("window", Some(value)) => {
            // TCP's own figures are bytes, and written without a unit.
            let bytes = match value.parse() {
                Ok(bytes) => bytes,
                Err(_) => parse_size(value).map_err(|error| error.to_string())?,
            };
            match bytes {
                0 => Err(wrong("a closed window lets nothing through".to_owned())),
                bytes => Ok(Change::Window(bytes as f64)),
            }
        }
        ("block" | "max-read" | "max-write", Some(value)) => {
            let bytes = parse_size(value).map_err(|error| error.to_string())?;
            if !(512..=MAX_BLOCK).contains(&bytes) {
                return Err(wrong("SMB moves 512 bytes to 16 MiB at once".to_owned()));
            }
            Ok(match name {
                "block" => Change::Block(bytes),
                "max-read" => Change::ReadBlock(bytes),
                _ => Change::WriteBlock(bytes),
            })
        }
        ("depth", Some(value)) => match value.parse() {
            Ok(depth @ 1..=DEPTH_MAX) => Ok(Change::Depth(depth)),
            _ => Err(wrong(format!("`{value}` is no number of requests up to {DEPTH_MAX}"))),
        },
        ("channels", Some(value)) => match value.parse() {
            Ok(channels @ 1..=CHANNELS_MAX) => Ok(Change::Channels(channels)),
            _ => Err(wrong(format!("`{value}` is no number of channels up to {CHANNELS_MAX}"))),
        },
        ("compound", Some(value)) => Ok(Change::Compound(is_on(value).map_err(wrong)?)),
        ("write-through", Some(value)) => Ok(Change::WriteThrough(is_on(value).map_err(wrong)?)),
        ("replication", Some(value)) => Ok(Change::Replication(replication(value).map_err(wrong)?)),
        ("users", Some(value)) => match value.parse::<u32>() {
            Ok(users) if users > 0 => Ok(Change::Users(f64::from(users))),
            _ => Err(wrong(format!("`{value}` is no number of users"))),
        },
        ("loss", Some(value)) => {
            let share = parse_share(value).map_err(|error| error.to_string())?;
            match share < 0.5 {
                true => Ok(Change::Loss(share)),
                false => Err(wrong("a line that loses half of all packets is none".to_owned())),
            }
        }
        ("signing", Some(value)) => match Protection::of_name(value) {
            Some(way) if !way.is_encryption() => Ok(Change::Signing(way)),
            _ => Err(wrong(format!("`{value}` is neither a signing algorithm nor off"))),
        },
        ("encryption", Some(value)) => match Protection::of_name(value) {
            Some(way) if !way.is_signing() => Ok(Change::Encryption(way)),
            _ => Err(wrong(format!("`{value}` is neither a cipher nor off"))),
        },
        ("cache-hit", Some(value)) => {
            Ok(Change::CacheHit(parse_share(value).map_err(|error| error.to_string())?))
        }
        ("queue", Some(value)) => {
            Ok(Change::Queue(parse_share(value).map_err(|error| error.to_string())?))
        }
        ("filesystem", Some(value)) => Ok(Change::Filesystem(times(value).map_err(wrong)?)),
        (_, Some(value)) => Ok(Change::Cpu(times(value).map_err(wrong)?)),
    }
}

/// `on`, `off`.
fn is_on(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}

/// `sync,rtt=5ms,bandwidth=1gbit`, in any order.
fn replication(text: &str) -> Result<Replication, String> {
    let (mut is_sync, mut rtt_ns, mut bandwidth_bits) = (None, None, None);
    for word in text.split(',').map(str::trim) {
        match word.split_once('=') {
            None if word == "sync" => is_sync = Some(true),
            None if word == "async" => is_sync = Some(false),
            Some(("rtt", value)) => {
                rtt_ns = Some(parse_duration(value.trim()).map_err(|error| error.to_string())?);
            }
            Some(("bandwidth", value)) => {
                let bits = parse_rate(value.trim()).map_err(|error| error.to_string())?;
                bandwidth_bits = Some(bits as f64);
            }
            _ => return Err(format!("`{word}` is not known")),
        }
    }
    let is_sync = is_sync.ok_or("it says neither sync nor async")?;
    let rtt_ns = rtt_ns.ok_or("it does not say the round trip between the servers")?;
    let rtt_ns = i64::try_from(rtt_ns).map_err(|_| "the round trip is too long")?;
    Ok(Replication { is_sync, rtt_ns, bandwidth_bits })
}

/// `4x`, `0.5x`: how many times as fast.
fn times(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', 'X']).and_then(|text| text.trim().parse::<f64>().ok());
    number
        .filter(|times| times.is_finite() && (1e-6..=1e6).contains(times))
        .ok_or_else(|| format!("`{text}` does not say how many times as fast"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_read_as_its_change() {
        for spec in SPECS {
            let change = change(spec.example).unwrap();
            assert_eq!(change.name(), spec.name);
            assert!(!change.assumption().is_empty());
            assert_eq!(super::change(&change.to_string()), Ok(change), "{change}");
        }
    }

    #[test]
    fn quantities_mean_what_they_say() {
        assert_eq!(change("rtt=20ms"), Ok(Change::Rtt(0.02)));
        assert_eq!(change("distance=2795km"), Ok(Change::Distance(2795.0)));
        assert_eq!(change("queue=0"), Ok(Change::Queue(0.0)));
        assert_eq!(change("filesystem = 0.5x"), Ok(Change::Filesystem(0.5)));
        assert_eq!(change("cpu=2x"), Ok(Change::Cpu(2.0)));
    }

    #[test]
    fn what_is_wrong_is_told_with_an_example() {
        for (text, wanted) in [
            ("speed=2x", "there are rtt, distance"),
            ("rtt", "rtt=20ms"),
            ("rtt=soon", "soon"),
            ("cpu=2", "cpu=2x"),
            ("cpu=-1x", "cpu=2x"),
            ("cpu=0x", "cpu=2x"),
            ("filesystem=infx", "filesystem=4x"),
            ("dirlease=on", "no value"),
            ("dircache=on", "dircache=collapse"),
            ("queue=200%", "more than 100%"),
            ("signing=aes-128-gcm", "neither a signing algorithm"),
            ("encryption=aes-gmac", "neither a cipher"),
            ("depth=0", "no number"),
            ("channels=99", "up to 32"),
            ("compound=maybe", "neither on nor off"),
            ("replication=rtt=5ms", "neither sync nor async"),
            ("replication=sync", "round trip"),
            ("replication=sync,rtt=5ms,color=red", "color=red"),
        ] {
            let said = change(text).unwrap_err();
            assert!(said.contains(wanted), "{text}: {said}");
        }
    }
}
