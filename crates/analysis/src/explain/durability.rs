//! Notes on which acknowledged writes were stable, with the settings that make them so and what these cost.
//! [`crate::durability`] finds it.

use arrow::error::ArrowError;
use smbscope_tables::readable;

use super::data::{About, Gain};
use super::what_if::ReplaySample;
use crate::durability::{Durability, Way, settings};
use crate::predict::changes::Change;

/// Less data of one kind of application is not worth a note, bytes.
const BYTES_MIN: u64 = 1 << 20;
/// Fewest writes for a note that all of them use write-through.
const WRITES_MIN: u64 = 20;

/// Adds the notes.
pub(super) fn notes(
    durability: Option<&Durability>,
    sample: Option<&mut ReplaySample>,
    note: &mut impl FnMut(bool, About, String),
) -> Result<(), ArrowError> {
    let Some(durability) = durability else { return Ok(()) };
    let writes = durability.writes;
    let through = |way: Way| {
        let rows = durability.ways.iter().filter(|row| row.way == way);
        rows.map(|row| row.tally.writes).sum::<u64>()
    };
    note(
        writes >= WRITES_MIN
            && through(Way::WriteThroughOpen) + through(Way::WriteThroughFlag) == writes,
        About::WriteThrough,
        format!("all {writes} writes request stable storage before the reply (write-through)"),
    );
    if let Some(what) = &durability.not_persistent {
        note(true, About::Unproven, what.clone());
    }
    let at_risk: Vec<_> = durability
        .applications
        .iter()
        .filter(|kind| kind.tally.unflushed_bytes >= BYTES_MIN)
        .filter_map(|kind| kind.verdict.clone())
        .collect();
    if at_risk.is_empty() {
        return Ok(());
    }
    let cost = match sample {
        Some(sample) => sample.gain_of(Change::WriteThrough(true))?,
        None => None,
    };
    for verdict in at_risk {
        note(true, About::NotStable, format!("{verdict}. {}", cost_words(cost.as_ref())));
    }
    let settings = settings().map(|(side, setting)| format!("{side}: {setting}"));
    note(true, About::NotStable, format!("What makes writes stable. {}", settings.join(". ")));
    Ok(())
}

/// What write-through would cost, in words.
fn cost_words(cost: Option<&Gain>) -> String {
    let change = Change::WriteThrough(true);
    match cost {
        Some(gain) => {
            let (before, after) = (gain.waiting_before_ns, gain.waiting_after_ns);
            let part = if gain.is_part {
                format!(", of the first {} operations", readable::count(gain.operations))
            } else {
                String::new()
            };
            format!(
                "With write-through for all writes, clients would wait {} instead of {}{part} (`smbscope predict INPUT --change {change}`)",
                readable::duration(after),
                readable::duration(before),
            )
        }
        None => format!(
            "What write-through would cost is not known: of the operations that are replayed, fewer than ten are a Flush \
             after writes, or a write-through write with the server's flush slice, which show it. `smbscope predict \
             INPUT --change {change}` computes it from a recording with more of them"
        ),
    }
}
