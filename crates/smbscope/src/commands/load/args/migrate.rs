//! Options of workloads that move bulk data (`--workload migrate`), and `--channels`, which all workloads have.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use clap::{Args, ValueEnum};
use smbscope_client::multichannel::Choice;
use smbscope_client::multichannel::policy::Rules;
use smbscope_load::migrate::Paths;
use smbscope_load::workload::{Direction, MIGRATIONS, Migration, MigrationChanges};

use super::{Run, USERS_DEFAULT};
use crate::exit::{Code, Failure};
use crate::options::duration;

/// Most connections of a session (MaximumConnectionCountPerServer of Windows).
const CHANNELS_MAX: u16 = 32;

/// See [`super::Client::channels`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channels {
    /// A number.
    Count(u16),
    /// From the server's list of interfaces.
    Auto,
    /// Addresses with a number each.
    Listed(Vec<(IpAddr, u16)>),
}

impl Channels {
    /// Reads `4`, `auto` or `10.0.0.2,10.1.0.2x4`.
    pub fn parse(text: &str) -> Result<Channels, String> {
        let in_range = |count: u16| (1..=CHANNELS_MAX).contains(&count);
        let wrong = || {
            format!(
                "expected a number from 1 to {CHANNELS_MAX}, auto, or addresses such as 10.0.0.2,10.1.0.2x4"
            )
        };
        if text == "auto" {
            return Ok(Channels::Auto);
        }
        if let Ok(count) = text.parse() {
            return if in_range(count) { Ok(Channels::Count(count)) } else { Err(wrong()) };
        }
        let mut list = Vec::new();
        for part in text.split(',') {
            // An IPv6 address contains no x.
            let (address, count) = match part.split_once('x') {
                None => (part, 1),
                Some((address, count)) => (address, count.parse().map_err(|_| wrong())?),
            };
            let address = address.trim_matches(['[', ']']).parse().map_err(|_| wrong())?;
            list.push((address, count));
        }
        let all: u32 = list.iter().map(|(_, count)| u32::from(*count)).sum();
        let is_valid =
            list.iter().all(|(_, count)| in_range(*count)) && all <= u32::from(CHANNELS_MAX);
        if is_valid { Ok(Channels::Listed(list)) } else { Err(wrong()) }
    }
}

/// Moving bulk data.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of --workload migrate")]
pub struct Bulk {
    /// Direction of the data: out (to the share), in (from it), both [default: set by the workload].
    #[arg(long, value_name = "DIRECTION", value_parser = Direction::parse)]
    pub direction: Option<Direction>,
    /// Streams at the same time, each with a file of its own [default: set by the workload].
    #[arg(long, value_name = "N")]
    pub streams: Option<u16>,
    /// Read all data back (or compare it while it is read) and check that it is what was written.
    #[arg(long)]
    pub verify: bool,
    /// Leave the files on the share.
    #[arg(long)]
    pub keep: bool,
    /// Channel for the next request: least-in-flight (the one with the fewest bytes in flight), or
    /// round-robin (each in turn, for comparison: a slow path then delays all).
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t)]
    pub channel_choice: ChannelChoice,
    /// Connections to an interface with receive side scaling at both ends, with --channels auto.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub channels_per_rss: u16,
    /// Connections to another interface, with --channels auto.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub channels_per_interface: u16,
    /// Maximum number of connections, with --channels auto.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub channels_max: u16,
    /// Use interfaces from this link speed on, in Gbit/s, with --channels auto [default: the speed of
    /// the fastest one].
    #[arg(long, value_name = "GBITS", value_parser = crate::options::positive)]
    pub link_speed_min: Option<f64>,
    /// Drop a channel whose peer does not answer (TCP) for this time; its requests are repeated on
    /// others.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub path_timeout: Duration,
}

/// See [`Bulk::channel_choice`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ChannelChoice {
    /// The fewest bytes in flight.
    #[default]
    LeastInFlight,
    /// Each in turn.
    RoundRobin,
}

impl Bulk {
    /// How requests are distributed.
    pub fn choice(&self) -> Choice {
        match self.channel_choice {
            ChannelChoice::LeastInFlight => Choice::LeastInFlight,
            ChannelChoice::RoundRobin => Choice::RoundRobin,
        }
    }

    /// The channels; `port` is the share's.
    pub fn paths(&self, channels: Option<&Channels>, port: u16) -> Paths {
        match channels {
            Some(Channels::Count(count)) => Paths::Count(*count),
            Some(Channels::Listed(list)) => Paths::Listed(
                list.iter().map(|&(ip, count)| (SocketAddr::new(ip, port), count)).collect(),
            ),
            Some(Channels::Auto) | None => Paths::Offered(Rules {
                per_rss_interface: self.channels_per_rss,
                per_interface: self.channels_per_interface,
                most: self.channels_max,
                least_speed: self.link_speed_min.map(|gigabits| (gigabits * 1e9) as u64),
            }),
        }
    }
}

/// The workload if it moves bulk data, with the changes of the command line, and its text.
pub fn migration(args: &Run) -> anyhow::Result<Option<(Migration, String)>> {
    let what = &args.what;
    let built_in = MIGRATIONS.iter().find(|(known, _)| *known == what.workload);
    let read = match built_in {
        Some((name, text)) => {
            Migration::parse(name, name, text)?.map(|it| (it, (*text).to_owned()))
        }
        None => from_file(&what.workload)?,
    };
    let Some((migration, text)) = read else { return Ok(None) };
    let changes = MigrationChanges {
        block_bytes: what.block.map(|block| u32::try_from(block).unwrap_or(u32::MAX)),
        depth: what.depth,
        bytes: what.size,
        streams: args.bulk.streams,
        direction: args.bulk.direction,
    };
    let changed =
        migration.with_changes(&changes).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Some((changed, text)))
}

/// A workload from a file, if it has a migration.
fn from_file(name: &str) -> anyhow::Result<Option<(Migration, String)>> {
    // Whatever is wrong with the file is reported when it is read as a workload of scenarios.
    let Ok(text) = std::fs::read_to_string(name) else { return Ok(None) };
    let stem = std::path::Path::new(name).file_stem().map(|stem| stem.to_string_lossy());
    let read = Migration::parse(name, stem.as_deref().unwrap_or(name), &text);
    let read = read.map_err(|error| Failure::new(Code::Input, error.to_string()))?;
    Ok(read.map(|migration| (migration, text)))
}

/// Options that mean nothing for a migration.
pub fn check(args: &Run) -> anyhow::Result<()> {
    let given = [
        ("--find-capacity", args.search.find_capacity),
        ("--matrix", args.matrix.matrix),
        ("--closed", args.course.closed),
        ("--start-at", args.course.start_at.is_some()),
        ("--shard", args.course.shard.count > 1),
        ("--scenario", !args.what.scenario.is_empty()),
        ("--durable", args.client.durable),
        ("--users", args.course.users != USERS_DEFAULT),
        ("--scale", args.what.scale != 1.0),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} has no meaning for a workload that moves bulk data ({}): omit it",
            args.what.workload
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_a_number_auto_or_addresses() {
        assert_eq!(Channels::parse("4"), Ok(Channels::Count(4)));
        assert_eq!(Channels::parse("auto"), Ok(Channels::Auto));
        let list = vec![("10.0.0.2".parse().unwrap(), 1), ("10.1.0.2".parse().unwrap(), 4)];
        assert_eq!(Channels::parse("10.0.0.2,10.1.0.2x4"), Ok(Channels::Listed(list)));
        let list = vec![("fd00::1".parse().unwrap(), 2)];
        assert_eq!(Channels::parse("[fd00::1]x2"), Ok(Channels::Listed(list)));
        for wrong in ["0", "33", "", "10.0.0.2x", "10.0.0.2x0", "10.0.0.2x33", "fs1", "10.0.0.2,"] {
            assert!(Channels::parse(wrong).unwrap_err().contains("10.1.0.2x4"), "{wrong}");
        }
    }
}
