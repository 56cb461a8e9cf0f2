//! What `ethtool` prints: which of its answers a heading opens. Each answer that a plan needs has one file below;
//! pause parameters, time stamping and private flags are passed over.
//!
//! `ethtool(8)`; `ethtool.c` and `netlink/*.c` of ethtool 6.1 print the headings.

use super::linux_lists::key_value;
use super::{Piece, ends};
use crate::input::Damage;
use crate::input::lines::Lines;

pub(super) mod channels;
pub(super) mod coalesce;
pub(super) mod driver;
pub(super) mod features;
pub(super) mod indirection;
pub(super) mod rings;
pub(super) mod settings;
pub(super) mod statistics;

/// The answer that a line opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    Channels,
    Indirection,
    Features,
    Driver,
    Coalesce,
    Rings,
    Statistics,
    Settings,
    PrivateFlags,
    /// An answer that no plan needs.
    Other,
    Failure,
}

const HEADINGS: [(&str, Heading); 17] = [
    ("Channel parameters for ", Heading::Channels),
    ("RX flow hash indirection table for ", Heading::Indirection),
    ("Features for ", Heading::Features),
    ("Offload parameters for ", Heading::Features),
    ("driver: ", Heading::Driver),
    ("Coalesce parameters for ", Heading::Coalesce),
    ("Ring parameters for ", Heading::Rings),
    ("NIC statistics:", Heading::Statistics),
    ("Settings for ", Heading::Settings),
    ("Private flags for ", Heading::PrivateFlags),
    ("Pause parameters for ", Heading::Other),
    ("Time stamping parameters for ", Heading::Other),
    ("ethtool: ", Heading::Failure),
    ("ethtool version ", Heading::Failure),
    ("netlink error: ", Heading::Failure),
    ("Cannot get ", Heading::Failure),
    ("no stats available", Heading::Failure),
];

pub(super) fn heading(line: &str) -> Option<Heading> {
    let line = line.trim_start();
    HEADINGS.iter().find(|(prefix, _)| line.starts_with(prefix)).map(|(_, heading)| *heading)
}

pub(super) fn read(
    heading: Heading,
    lines: &mut Lines<'_>,
    pieces: &mut Vec<Piece>,
) -> Result<(), Damage> {
    match heading {
        Heading::Channels => pieces.push(Piece::Channels(channels::read(lines))),
        Heading::Indirection => pieces.push(Piece::Indirection(indirection::read(lines)?)),
        Heading::Features => pieces.push(Piece::Features(features::read(lines))),
        Heading::PrivateFlags => pieces.push(Piece::Features(features::private_flags(lines))),
        Heading::Driver => pieces.push(Piece::Driver(driver::read(lines))),
        Heading::Coalesce => pieces.push(Piece::Coalescing(coalesce::read(lines))),
        Heading::Rings => pieces.push(Piece::Rings(rings::read(lines))),
        Heading::Statistics => pieces.push(Piece::Statistics(statistics::read(lines)?)),
        Heading::Settings => pieces.push(Piece::Settings(settings::read(lines))),
        Heading::Other => {
            let heading = lines.take().unwrap_or_default().trim();
            pieces.push(Piece::NotNeeded(heading.chars().take(200).collect()));
            while !ends(lines) {
                lines.skip(1);
            }
        }
        Heading::Failure => {
            let line = lines.take().unwrap_or_default().trim();
            pieces.push(Piece::Failure(line.chars().take(200).collect()));
            if lines.peek().is_some_and(|line| {
                line.trim_start().starts_with("For more information run ethtool")
            }) {
                lines.skip(1);
            }
        }
    }
    Ok(())
}

/// The adapter of a heading such as `Ring parameters for eth0:`; otherwise that of the last command line.
fn device(lines: &mut Lines<'_>) -> Option<String> {
    let line = lines.take().unwrap_or_default();
    let named = line
        .split_once(" for ")
        .map(|(_, rest)| rest.split([' ', '\t']).next().unwrap_or_default());
    named.map(|name| name.trim_end_matches(':').to_owned()).or_else(|| lines.device.clone())
}

/// Calls `set` with section, key and value of each `key: value` line until another output begins. `set` returns whether
/// it understood the value. A line without a value is the heading of a section.
fn each_value(lines: &mut Lines<'_>, mut set: impl FnMut(&str, &str, &str) -> bool) {
    let mut section = "";
    while let Some(line) = lines.peek().filter(|_| !ends(lines)) {
        match key_value(line) {
            _ if line.trim().is_empty() => lines.skip(1),
            Some((key, "")) if key.contains(' ') => {
                section = key;
                lines.skip(1);
            }
            Some((key, value)) if set(section, key, value) => lines.skip(1),
            _ => lines.pass_unknown(),
        }
    }
}

/// A number, or `n/a` where the driver does not report it.
fn number_or_absent(value: &str) -> Option<Option<u32>> {
    match value {
        "n/a" => Some(None),
        value => value.parse().ok().map(Some),
    }
}
