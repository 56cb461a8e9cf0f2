//! At most six numbers next to the verdict, each of which says what it measures.

use smbscope_analysis::channels::{ChannelTimeline, CpuCost, SessionTimeline};
use smbscope_analysis::summary::{Load, Report, StepRow};

use crate::answers::load::state::{bound, is_migration, response};
use crate::document::Tile;
use crate::value::format;

/// At most six numbers.
pub(crate) fn tiles(report: &Report) -> Vec<Tile> {
    if let Some(load) = &report.load
        && let Some(step) = load.answer_step()
    {
        let session = report.channels.as_ref().and_then(|channels| channels.sessions.first());
        return match session.filter(|_| is_migration(load)) {
            Some(session) => migration_tiles(report, step, session),
            None => step_tiles(load, step),
        };
    }
    let tally = &report.totals.tally;
    if tally.operations == 0 {
        return Vec::new();
    }
    let seconds = match (report.start_ns, report.end_ns) {
        (Some(start), Some(end)) => end.saturating_sub(start) as f64 / 1e9,
        _ => 0.0,
    };
    let rate = if seconds > 0.0 {
        format!("{}/s", format::number(tally.operations as f64 / seconds))
    } else {
        String::new()
    };
    let n = format!("n {}", format::count(tally.elapsed.n));
    let most = format!("at most {}", format::known_duration(tally.elapsed.max_ns));
    let bytes = tally.read_bytes.saturating_add(tally.written_bytes);
    let both = format!(
        "{} read, {} written",
        format::bytes(tally.read_bytes),
        format::bytes(tally.written_bytes)
    );
    let unanswered = match tally.unanswered {
        0 => String::new(),
        n => format!("and {} without a reply", format::count(n)),
    };
    vec![
        Tile::new("Operations", format::count(tally.operations), rate),
        Tile::new("Median of operations", format::known_duration(tally.elapsed.p50_ns), n),
        Tile::new("p95 of operations", format::known_duration(tally.elapsed.p95_ns), most),
        Tile::new(
            "p95 at the server",
            format::known_duration(tally.server.p95_ns),
            match tally.server.n {
                0 => "not known".to_owned(),
                n => format!("n {}", format::count(n)),
            },
        ),
        Tile::new("File data", format::bytes(bytes), both),
        Tile::new("Errors", format::count(tally.errors), unanswered),
    ]
}

/// What a run that moves bulk data is asked.
fn migration_tiles(report: &Report, step: &StepRow, session: &SessionTimeline) -> Vec<Tile> {
    // Channels of older runs count what was prepared and verified, too.
    let bytes = step.bytes_per_second.map_or(session.bytes(), |rate| {
        (rate * step.duration_ns.max(0) as f64 / 1e9).round() as u64
    });
    let rate = |bytes: f64| format::bits(bytes * 8.0);
    let mut notes = vec![match session.paths {
        1 => "1 path".to_owned(),
        paths => format!("{} paths", format::count(paths)),
    }];
    let count = |is_of: fn(&ChannelTimeline) -> bool| {
        session.channels.iter().filter(|one| is_of(one)).count() as u64
    };
    let others = [
        (count(|one| one.bind_status.is_some()), "refused"),
        (count(|one| one.lost_ns.is_some()), "lost"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(others.map(|(count, word)| format!("{} {word}", format::count(count))));
    // The run's own rate, which counts from the first request to the last reply.
    let mean = step.bytes_per_second.unwrap_or(session.mean_bytes_per_second);
    let mut tiles = vec![
        Tile::new(
            "Moved",
            format::bytes(bytes),
            format!("in {}", format::known_duration(Some(step.duration_ns))),
        ),
        Tile::new(
            "Plateau",
            session.plateau_bytes_per_second.map_or_else(|| "not reached".to_owned(), rate),
            format!("mean {}", rate(mean)),
        ),
        Tile::new("Channels", format::count(bound(session)), notes.join(", ")),
        Tile::new(
            "First byte",
            format::known_duration(session.first_byte_after_ns),
            format!(
                "90 % of the plateau after {}",
                format::known_duration(session.plateau_after_ns)
            ),
        ),
    ];
    // A machine's own row has no process.
    let machines: Vec<_> = session.cpu.iter().filter(|cost| cost.process.is_none()).collect();
    if let Some(first) = machines.first() {
        let of = |cost: &CpuCost| format!("{:.2} s", cost.seconds_per_gb);
        let others = machines.iter().skip(1).map(|cost| format!("{} {}", cost.source, of(cost)));
        let title = format!("CPU time per GB, {}", first.source);
        tiles.push(Tile::new(title, of(first), others.collect::<Vec<_>>().join(", ")));
    }
    let tally = &report.totals.tally;
    let again: u64 = session.channels.iter().filter_map(|one| one.retransmissions).sum();
    let again = format!("{} segments retransmitted", format::count(again));
    tiles.push(Tile::new("Errors", format::count(tally.errors), again));
    tiles
}

fn step_tiles(load: &Load, step: &StepRow) -> Vec<Tile> {
    let at = format!("with {} users", format::count(step.users));
    let users = match load.answers.as_slice() {
        [answer] => {
            let interval = match (answer.low, answer.high, answer.confidence) {
                (Some(low), Some(high), Some(confidence)) => format!(
                    "{} to {}, {} sure",
                    format::count(low),
                    format::count(high),
                    format::share(confidence).replace(".0 ", " ")
                ),
                (Some(low), Some(high), None) => {
                    format!("{} to {}", format::count(low), format::count(high))
                }
                (Some(low), None, _) => {
                    format!("at least {}", format::count(low.min(answer.users.unwrap_or(low))))
                }
                (None, Some(high), _) => format!("at most {}", format::count(high)),
                (None, None, _) => String::new(),
            };
            let users = answer.users.map_or_else(|| "none".to_owned(), format::count);
            Tile::new("Users without overload", users, interval)
        }
        _ => Tile::new(
            "Users",
            format::count(step.users),
            format!("overload {}", format::share(step.overload_share)),
        ),
    };
    let (median, p95) = response(load, step);
    let median = format!("median {}, {at}", format::known_duration(median));
    let mut tiles = vec![
        users,
        Tile::new("p95 of scenarios", format::known_duration(p95), median),
        Tile::new(
            "Scenarios per second",
            format::number(step.throughput),
            if step.rate > 0.0 {
                format!("of {} scheduled", format::number(step.rate))
            } else {
                "without a schedule".to_owned()
            },
        ),
    ];
    if let Some(operations) = step.operations_per_second {
        let bytes = step.bytes_per_second.map(|bytes| format!("{}/s", format::bytes(bytes as u64)));
        let bytes = bytes.unwrap_or_default();
        tiles.push(Tile::new("Operations per second", format::number(operations), bytes));
    }
    if let Some(cpu) = step.server_cpu_share {
        let disk =
            step.server_disk_share.map(|disk| format!("busiest disk {}", format::share(disk)));
        tiles.push(Tile::new("Server's processors", format::share(cpu), disk.unwrap_or_default()));
    }
    if tiles.len() < 5 {
        let late = format!("at most {}", format::known_duration(step.late.max_ns));
        tiles.push(Tile::new("p95 of lateness", format::known_duration(step.late.p95_ns), late));
    }
    let outcomes = load.outcomes();
    let mut note =
        format!("{} of {}", format::share(outcomes.failed_share()), format::count(outcomes.ended));
    if outcomes.not_started > 0 {
        note += &format!(", {} more did not start", format::count(outcomes.not_started));
    }
    tiles.push(Tile::new("Failed scenarios", format::count(outcomes.failed), note));
    tiles
}
