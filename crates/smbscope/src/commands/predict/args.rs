//! What `smbscope predict` is told, and changes as people write them.

use std::path::PathBuf;

use clap::ValueEnum;
use smbscope_event::profile::CacheOption;
use smbscope_load::units::{parse_distance, parse_duration, parse_share};
use smbscope_model::predict::change::{Change, SPECS};

use crate::format::RowFormat;

/// Predict what a change would bring.
///
/// From a profile (what one operation costs the server, and how many of which a user's scenarios
/// need) the time that a user spends is a sum: round trips, the server's time, and a constant for
/// the client and the bytes. `published` is the model of Lovinger and Kruse (SDC 2010) for home
/// directories: the means of a reference server under 2,250 users, with SMB 2.1, with collapsed
/// opens of directories and with directory leases. It gives the published table, and the same for
/// any other network or server.
///
/// Changes apply one after the other, in the order in which they are given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope predict --profile published
  smbscope predict --profile published --change rtt=20ms
  smbscope predict --profile published --change distance=2795km --change dirlease
  smbscope predict --profile published --change filesystem=4x --format json
  smbscope predict --list")]
pub struct Predict {
    /// What to predict from.
    #[arg(long, value_enum, value_name = "PROFILE", required_unless_present = "list")]
    pub profile: Option<ProfileName>,
    /// A change (see --list); may be given several times.
    #[arg(long = "change", value_name = "CHANGE", value_parser = change)]
    pub changes: Vec<Change>,
    /// List the changes that can be predicted.
    #[arg(long, conflicts_with_all = ["profile", "changes"])]
    pub list: bool,
    /// Form of the output; json is one object per line: scenario, option, seconds and their parts.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: RowFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Profiles that smbscope brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// The published model, with one constant for each command that is fitted to its results.
    Published,
    /// The published means alone: within 4.3 % of the published results.
    PublishedMeans,
}

/// Reads `rtt=20ms` and the like.
fn change(text: &str) -> Result<Change, String> {
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
        ("queue", Some(value)) => {
            Ok(Change::Queue(parse_share(value).map_err(|error| error.to_string())?))
        }
        ("filesystem", Some(value)) => Ok(Change::Filesystem(times(value).map_err(wrong)?)),
        (_, Some(value)) => Ok(Change::Cpu(times(value).map_err(wrong)?)),
    }
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
            assert_eq!(change.spec().name, spec.name);
            assert!(!change.assumption().is_empty());
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
        ] {
            let said = change(text).unwrap_err();
            assert!(said.contains(wanted), "{text}: {said}");
        }
    }
}
