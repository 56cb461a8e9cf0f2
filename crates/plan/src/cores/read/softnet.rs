//! `/proc/net/softnet_stat`: frames of each CPU, and what its receive work could not finish.
//!
//! `softnet_seq_show`, Linux `net/core/net-procfs.c`: columns of hexadecimal numbers, one line for each online CPU.

use serde::{Deserialize, Serialize};

use super::{CPUS_MAX, Piece};
use crate::input::Damage;
use crate::input::lines::Lines;

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftnetRow {
    /// Number of the CPU; older kernels do not write it, and the row's position is used.
    pub cpu: u32,
    /// Frames since the system started, modulo 2^32.
    pub processed: u32,
    /// Frames that its backlog (`netdev_max_backlog`) had no space for.
    pub dropped: u32,
    /// Rounds that ended with work left (`netdev_budget`).
    pub squeezed: u32,
    /// Frames that RPS sent to it.
    pub rps: Option<u32>,
}

pub(super) fn starts(line: &str) -> bool {
    row(line, 0).is_some()
}

fn row(line: &str, position: u32) -> Option<SoftnetRow> {
    let mut words = [0u32; 16];
    let mut count = 0;
    for word in line.split_whitespace() {
        if word.len() != 8 {
            return None;
        }
        *words.get_mut(count)? = u32::from_str_radix(word, 16).ok()?;
        count += 1;
    }
    if count < 9 {
        return None;
    }
    let word = |index: usize| words.get(index).copied().filter(|_| index < count);
    // Column 13 is the CPU's number since Linux 5.10; before it was a zero or not there.
    let cpu = word(12).filter(|number| *number != 0).unwrap_or(position);
    Some(SoftnetRow {
        cpu,
        processed: word(0)?,
        dropped: word(1)?,
        squeezed: word(2)?,
        rps: word(9),
    })
}

pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let mut rows: Vec<SoftnetRow> = Vec::new();
    while let Some(row) =
        lines.peek().and_then(|line| row(line, u32::try_from(rows.len()).unwrap_or(u32::MAX)))
    {
        if rows.len() >= CPUS_MAX {
            return Err(Damage::new(lines.number(), format!("more than {CPUS_MAX} CPUs")));
        }
        rows.push(row);
        lines.skip(1);
    }
    if lines.peek().is_some_and(|line| {
        line.split_whitespace().count() >= 9 && line.split_whitespace().all(is_word)
    }) {
        return Err(Damage::new(
            lines.number(),
            "a line of softnet_stat has a number that does not have 8 digits",
        ));
    }
    pieces.push(Piece::Softnet(rows));
    Ok(())
}

fn is_word(word: &str) -> bool {
    word.chars().all(|digit| digit.is_ascii_hexdigit())
}
