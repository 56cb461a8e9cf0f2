//! The numbers of a prediction that a judgement of a baseline needs.

use smbscope_analysis::predict::capacity::Capacity;
use smbscope_analysis::predict::forecast::RecordedForecast;
use smbscope_analysis::predict::replay::{Part, Row};
use smbscope_plan::baseline::cost::{CommandNumbers, Numbers};

/// The parts that are the server's CPU time for signing and encryption.
const CRYPTO: [Part; 3] = [Part::CryptoIn, Part::CryptoOut, Part::Server];

/// Numbers of a prediction. `moved_bytes` are those that the recorded operations read and wrote.
pub fn baseline_numbers(forecast: &RecordedForecast, moved_bytes: u64) -> Numbers {
    let prediction = &forecast.prediction;
    let is_protection =
        forecast.changes.iter().any(|change| matches!(change.name(), "signing" | "encryption"));
    let cpu_ns: f64 = prediction.commands.iter().map(cpu_ns).sum();
    let users =
        |capacity: &Capacity| capacity.resources.first().map(|one| (one.users, one.users_error));
    Numbers {
        commands: prediction.commands.iter().filter_map(numbers).collect(),
        scenarios: prediction.all_scenarios.as_ref().and_then(numbers),
        moved_bytes,
        server_cpu_ns: is_protection.then_some(cpu_ns),
        users_before: forecast.capacity.as_ref().ok().and_then(users),
        users_after: forecast.changed_capacity.as_ref().and_then(users),
        notes: forecast.notes.clone(),
        warnings: forecast.warnings.clone(),
    }
}

fn numbers(row: &Row) -> Option<CommandNumbers> {
    Some(CommandNumbers {
        name: row.name.clone(),
        n: row.before.distribution.n,
        before_ns: row.before.mean_ns()?,
        after_ns: row.after.mean_ns()?,
        change_error_ns: row.change_error_ns,
    })
}

/// CPU time that is added to all operations of a command, ns.
fn cpu_ns(row: &Row) -> f64 {
    let is_crypto = |name: &str| CRYPTO.iter().any(|part| part.name() == name);
    let parts = row.parts.iter().filter(|part| is_crypto(part.part));
    let each: f64 = parts.map(|part| part.after_ns - part.before_ns).sum();
    each * row.before.distribution.n as f64
}
