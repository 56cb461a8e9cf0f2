//! Users and scenarios over time, and the steps as bands of time.

use smbscope_analysis::summary::{LoadBin, Report};

use crate::document::{Band, Block, Join, Lines};
use crate::value::{Format, format};

/// Steps, each with the warm-up before it: bands of every chart over time.
pub(crate) fn bands(report: &Report) -> Vec<Band> {
    let Some(load) = &report.load else { return Vec::new() };
    let warm_up_ns = load.runs.iter().map(|part| part.description.warm_up_ns).max().unwrap_or(0);
    let mut steps: Vec<_> = load.steps.iter().filter(|step| step.end_ns > step.start_ns).collect();
    steps.sort_by_key(|step| step.start_ns);
    let mut bands = Vec::new();
    for step in steps {
        if warm_up_ns > 0 {
            bands.push(Band {
                from_ns: step.start_ns.saturating_sub(warm_up_ns),
                to_ns: step.start_ns,
                label: "warm-up".to_owned(),
                is_measured: false,
            });
        }
        bands.push(Band {
            from_ns: step.start_ns,
            to_ns: step.end_ns,
            label: format!("{} users", format::count(step.users)),
            is_measured: true,
        });
    }
    bands
}

/// Users and scenarios, on the axis of the operations.
pub(crate) fn over_time(report: &Report) -> Vec<Block> {
    let series = &report.series;
    let Some(load) =
        report.load.as_ref().filter(|load| load.bins.iter().any(|it| it.scheduled > 0))
    else {
        return Vec::new();
    };
    let seconds = series.bin_ns.max(1) as f64 / 1e9;
    let each = |of: &dyn Fn(&LoadBin) -> f64| -> Vec<f64> { load.bins.iter().map(of).collect() };
    let time = |ns: Option<i64>| ns.map_or(f64::NAN, |ns| ns as f64);
    let chart = |caption: &str,
                 help: &str,
                 format,
                 unit: &str,
                 per: &str,
                 join,
                 lines: Vec<(&str, Vec<f64>)>| {
        Block::chart(Lines {
            caption: caption.to_owned(),
            help: help.to_owned(),
            format,
            unit: unit.to_owned(),
            per: per.to_owned(),
            join,
            start_ns: load.bins.first().map_or(0, |bin| bin.start_ns),
            bin_ns: series.bin_ns,
            lines: lines.into_iter().map(|(name, line)| (name.to_owned(), line)).collect(),
            is_sampled: format == Format::Duration,
            bands: bands(report),
        })
    };
    let mut blocks = Vec::new();
    let first = load.bins.iter().find_map(|bin| bin.users);
    // With one number of users the bands say it.
    if load.bins.iter().any(|bin| bin.users.is_some() && bin.users != first) {
        let users = each(&|bin| bin.users.map_or(f64::NAN, |users| users as f64));
        blocks.push(chart(
            "Users",
            "Users in measured windows; empty between them.",
            Format::Count,
            "count",
            "",
            Join::Most,
            vec![("Users", users)],
        ));
    }
    blocks.push(chart(
        "Scenarios",
        "Scenarios by scheduled time and by the time at which they ended: where the lines diverge, the server does not keep up.",
        Format::Count,
        "scenarios/s",
        "/s",
        Join::Mean,
        vec![
            ("Scheduled", each(&|bin| bin.scheduled as f64 / seconds)),
            ("Ended", each(&|bin| bin.completed as f64 / seconds)),
        ],
    ));
    blocks.push(chart(
        "Response time of scenarios",
        "By scheduled time.",
        Format::Duration,
        "time",
        "",
        Join::Most,
        vec![
            ("p50", each(&|bin| time(bin.response.p50_ns))),
            ("p95", each(&|bin| time(bin.response.p95_ns))),
            ("p99", each(&|bin| time(bin.response.p99_ns))),
            ("Latest begin", each(&|bin| time(bin.late_max_ns))),
        ],
    ));
    blocks
}
