//! From a recording's operations to its [`Profile`].
//!
//! Means add up: the round trip of all operations, the server's parts and a command's constant are
//! the mean time of its operations, and with what lies between operations the mean time of a
//! scenario. Without scenarios (captures), what a client does in an hour represents one.

use smbscope_tables::profile::{
    CacheOption, CommandProfile, Cost, PartProfile, Profile, RateProfile, ScenarioProfile,
    SizeProfile, VERSION, Variant,
};
use smbscope_tables::slice::Kind;

use super::averages::sum_s;
use super::replay::{Detail, Needs, Part, Prediction, Sizes};

/// The name of the scenario of recordings without scenarios.
pub const ALL: &str = "(all operations)";

/// The profile of a replay without changes [in detail](super::replay::Replay::in_detail). `users_s` is how
/// long all users together were measured, s, if that is known. None for a recording without timed
/// operations or duration.
pub fn profile(
    prediction: &Prediction,
    users_s: Option<f64>,
    name: &str,
    source: &str,
) -> Option<Profile> {
    let detail = prediction.detail.as_ref()?;
    let wholes = || detail.sizes.iter().filter(|row| row.bytes.is_none());
    let requests: u64 = wholes().map(count).sum();
    let lasted_s = detail.lasted_ns as f64 / 1e9;
    if requests == 0 || lasted_s <= 0.0 {
        return None;
    }
    let network_ns: f64 = wholes().map(|row| sum_ns(row, Part::Network) as f64).sum();
    let rtt_s = network_ns / 1e9 / requests as f64;
    let commands = wholes().map(|row| CommandProfile {
        command: row.command.clone(),
        cost: cost(row, rtt_s),
        sizes: sizes(detail, &row.command, rtt_s),
    });
    let commands: Vec<_> = commands.collect();
    let rates = detail
        .rates
        .map(|rate| RateProfile { mean: rate.bytes as f64 / lasted_s, most: rate.most as f64 });
    let users_s = users_s.filter(|all| *all > 0.0).unwrap_or(detail.clients_ns / 1e9);
    let hours = users_s / 3600.0;
    let scenarios = detail.needs.iter().filter_map(|needs| {
        let (count, mean_s) = match &needs.scenario {
            Some(name) => {
                let row = prediction.scenarios.iter().find(|row| row.name == *name)?;
                (row.count as f64, row.before.mean_ns()? / 1e9)
            }
            None => (hours, prediction.waiting_ns.0 as f64 / 1e9 / hours),
        };
        let runs_per_hour = count / hours;
        (count > 0.0).then(|| scenario(needs, count, mean_s, runs_per_hour, &commands, rtt_s))
    });
    let scenarios = scenarios.collect();
    Some(Profile {
        version: VERSION,
        name: name.to_owned(),
        source: source.to_owned(),
        rtt_s,
        rates: Some(rates),
        commands,
        scenarios,
    })
}

fn scenario(
    needs: &Needs,
    count: f64,
    mean_s: f64,
    runs_per_hour: f64,
    commands: &[CommandProfile],
    rtt_s: f64,
) -> ScenarioProfile {
    let of = |command: &CommandProfile| {
        let found = needs.requests.iter().find(|(name, _)| *name == command.command);
        found.map_or(0.0, |(_, n)| *n as f64 / count)
    };
    let mut variant = Variant {
        option: CacheOption::Recorded,
        round_trips: needs.rounds as f64 / count,
        operations: commands.iter().map(of).collect(),
        between_s: 0.0,
    };
    let each = |cost: &Cost| cost.server_s() + cost.constant_s;
    let known_s = variant.round_trips * rtt_s + sum_s(commands, &variant, each);
    variant.between_s = mean_s - known_s;
    let scenario = needs.scenario.clone().unwrap_or_else(|| ALL.to_owned());
    ScenarioProfile { scenario, runs_per_hour, variants: vec![variant] }
}

fn sizes(detail: &Detail, command: &str, rtt_s: f64) -> Vec<SizeProfile> {
    let rows = detail.sizes.iter().filter(|row| row.command == command);
    rows.filter_map(|row| {
        let (least_bytes, most_bytes) = row.bytes?;
        Some(SizeProfile { least_bytes, most_bytes, cost: cost(row, rtt_s) })
    })
    .collect()
}

fn cost(row: &Sizes, rtt_s: f64) -> Cost {
    let parts = row.parts.iter().filter_map(|(part, times)| {
        let part = match part {
            Part::Server => None,
            part => Some(slice(*part)?),
        };
        let share = row.share(times);
        Some(PartProfile {
            part,
            mean_s: share.mean_ns / 1e9,
            stddev_s: share.stddev_ns / 1e9,
            p95_s: times.distribution.p95_ns.unwrap_or(0) as f64 / 1e9,
        })
    });
    let mut cost = Cost { count: count(row), parts: parts.collect(), constant_s: 0.0 };
    let mean_s = row.whole.mean_ns().unwrap_or(0.0) / 1e9;
    cost.constant_s = mean_s - rtt_s - cost.server_s();
    cost
}

/// The slice of a part.
fn slice(part: Part) -> Option<Kind> {
    let place = (part as usize).checked_sub(Part::FIRST_SLICE)?;
    Kind::ALL.get(place).copied()
}

fn count(row: &Sizes) -> u64 {
    row.whole.distribution.n
}

fn sum_ns(row: &Sizes, part: Part) -> i64 {
    let found = row.parts.iter().find(|(one, _)| *one == part);
    found.map_or(0, |(_, times)| times.distribution.sum_ns)
}
