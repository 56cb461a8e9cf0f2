//! What a plan of a second server says first: the longest waits, what would be lost, and whether the link suffices.

use smbscope_analysis::replication::forecast::{
    GoalForecast, Percentiles, ReplicationForecast, WaitRow, Waits,
};

use super::{name, rate};
use crate::document::{Tile, Tone, Verdict};
use crate::value::format;

/// The row whose operations have the longest total wait.
pub(super) fn most_waiting(waits: &Waits) -> Option<(&WaitRow, &Percentiles)> {
    let row = waits.commands.first()?;
    row.added.as_ref().filter(|_| row.waiting > Some(0)).map(|added| (row, added))
}

/// What the plan says first.
pub(super) fn verdict(forecast: &ReplicationForecast) -> Verdict {
    let Some(line) = forecast.lines.first().filter(|_| forecast.writes > 0) else {
        return Verdict {
            tone: Tone::Unknown,
            sentence: "The recording has no write: nothing would be copied".to_owned(),
            reasons: Vec::new(),
        };
    };
    let place = format!("a second server at {}", name(line));
    let mut reasons = Vec::new();
    let (mut tone, sentence) = match most_waiting(&line.sync) {
        Some((row, added)) => (
            Tone::Watch,
            format!(
                "With synchronous copies to {place}, {} of {} {} requests wait for it: {} more at the median, {} more at p99",
                format::count(row.waiting.unwrap_or(0)),
                format::count(added.n),
                row.name,
                format::duration(added.p50_ns.unwrap_or(0)),
                format::duration(added.p99_ns.unwrap_or(0)),
            ),
        ),
        None => (
            Tone::Good,
            format!(
                "With synchronous copies to {place}, no request of these clients waits: none requests stable storage"
            ),
        ),
    };
    if let Some(risk) = &line.at_risk {
        reasons.push(format!(
            "With asynchronous copies up to {} would be lost with the first server, at most {} during 99 % of the time; the \
             recovery point is {} at worst.",
            format::bytes(risk.max_bytes),
            format::bytes(risk.p99_bytes),
            format::duration(risk.max_ns)
        ));
    }
    if let Some(share) = line.load.saturated_share {
        reasons.push(match share {
            0.0 => "No second has more data than the link carries.".to_owned(),
            share => format!(
                "{} of the seconds have more data than the link carries.",
                format::share(share)
            ),
        });
        if line.load.times_mean.is_some_and(|times| times < 1.0) {
            tone = Tone::Bad;
            reasons.push(
                "The link cannot carry the writes: the second server would never catch up."
                    .to_owned(),
            );
        }
    }
    Verdict { tone, sentence, reasons }
}

/// At most six numbers.
pub(super) fn tiles(forecast: &ReplicationForecast) -> Vec<Tile> {
    let load = forecast.lines.first().map(|line| line.load).unwrap_or_default();
    let mut tiles = vec![
        Tile::new(
            "Written on average",
            rate(load.mean_bits),
            format!("p99 of seconds {}", rate(load.p99_bits)),
        ),
        Tile::new("Busiest second", rate(load.max_bits), ""),
        Tile::new(
            "Flushes and write-through writes",
            format::count(forecast.stable_operations),
            format!("they wait; {} acknowledged writes in total", format::count(forecast.writes)),
        ),
    ];
    // The shortest holds for all links.
    let value = |goal: &GoalForecast| match (goal.rtt_ns, goal.is_always) {
        (Some(ns), _) => format::duration(ns),
        (None, true) => "any".to_owned(),
        (None, false) => "none".to_owned(),
    };
    if let Some(goal) = forecast.goals.iter().min_by_key(|goal| (goal.is_always, goal.rtt_ns)) {
        let of = match (forecast.goals.len(), goal.bandwidth_bits) {
            (1, _) => goal.goal.clone(),
            (_, Some(bits)) => format!("{}, {}", goal.goal, rate(bits)),
            (_, None) => format!("{}, without a limit of the rate", goal.goal),
        };
        tiles.push(Tile::new("Longest round trip for the goal", value(goal), of));
    }
    if let Some(outage) = forecast.lines.first().and_then(|line| line.outage) {
        tiles.push(Tile::new(
            "Log for the outage",
            format::bytes(outage.log_bytes),
            format!("{} without the link", format::duration(outage.outage_ns)),
        ));
    }
    tiles
}
