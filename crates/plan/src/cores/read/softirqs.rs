//! `/proc/softirqs`: how often each soft interrupt ran on each CPU. `NET_RX` is the receive work.
//!
//! `show_softirqs`, Linux `fs/proc/softirqs.c`.

use serde::{Deserialize, Serialize};

use super::Piece;
use super::interrupts::header;
use super::linux_lists::key_value;
use crate::input::Damage;
use crate::input::lines::Lines;

const NAMES: [&str; 10] = [
    "HI",
    "TIMER",
    "NET_TX",
    "NET_RX",
    "BLOCK",
    "IRQ_POLL",
    "BLOCK_IOPOLL",
    "TASKLET",
    "SCHED",
    "HRTIMER",
];

/// Soft interrupts of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softirqs {
    /// Numbers of the CPUs, in the order of the columns.
    pub cpus: Vec<u32>,
    pub net_rx: Vec<u64>,
    pub net_tx: Vec<u64>,
}

pub(super) fn starts(lines: &Lines<'_>) -> bool {
    (1..=2).filter_map(|ahead| lines.ahead(ahead)).any(is_row)
}

fn is_row(line: &str) -> bool {
    key_value(line).is_some_and(|(name, _)| NAMES.contains(&name) || name == "RCU")
}

pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let mut softirqs = Softirqs { cpus: header(lines)?, ..Softirqs::default() };
    while let Some((name, values)) = lines.peek().filter(|line| is_row(line)).and_then(key_value) {
        let counts: Option<Vec<u64>> =
            values.split_whitespace().map(|count| count.parse().ok()).collect();
        let counts =
            counts.filter(|counts| counts.len() == softirqs.cpus.len()).ok_or_else(|| {
                Damage::new(
                    lines.number(),
                    format!("`{name}` does not have {} counts", softirqs.cpus.len()),
                )
            })?;
        match name {
            "NET_RX" => softirqs.net_rx = counts,
            "NET_TX" => softirqs.net_tx = counts,
            _ => {}
        }
        lines.skip(1);
    }
    pieces.push(Piece::Softirqs(softirqs));
    Ok(())
}
