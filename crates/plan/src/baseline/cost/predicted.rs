//! Numbers of a prediction with their intervals: time of each command, CPU time for each GB, users carried.
//!
//! Owns the error that a calibration adds: those of one machine differ by a tenth (docs/measurements), which the scatter of
//! a recording does not show.

use serde::{Deserialize, Serialize};

use super::{CommandNumbers, Numbers, Question};

/// Error of what a calibration adds, as a share of it.
const CALIBRATION_ERROR: f64 = 0.1;
const MIB: f64 = 1_048_576.0;
const GB: f64 = 1e9;
/// What a recording must move at least for a cost of each MiB, and of each GB: nothing is said about a unit of which it has
/// only a small part.
const MOVED_MIB_MIN: f64 = 4.0;
const MOVED_GB_MIN: f64 = 0.1;

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// With half of the width of the interval.
    pub fn new(value: f64, error: f64) -> Estimate {
        Estimate { value, low: value - error.abs(), high: value + error.abs() }
    }

    /// Each of the three times a factor above zero.
    pub fn times(self, factor: f64) -> Estimate {
        Estimate { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// The time of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandCost {
    pub name: String,
    pub n: u64,
    /// Mean time today, ns.
    pub before_ns: f64,
    pub after_ns: f64,
    /// Added to each, ns.
    pub added_ns: Estimate,
}

impl CommandCost {
    fn from_row(one: &CommandNumbers) -> CommandCost {
        let added = one.after_ns - one.before_ns;
        let error = (CALIBRATION_ERROR * added).hypot(one.change_error_ns.unwrap_or(0.0));
        CommandCost {
            name: one.name.clone(),
            n: one.n,
            before_ns: one.before_ns,
            after_ns: one.after_ns,
            added_ns: Estimate::new(added, error),
        }
    }

    /// The new time as a multiple of today's; none where that is zero.
    pub fn factor(&self) -> Option<f64> {
        (self.before_ns > 0.0).then(|| self.after_ns / self.before_ns)
    }
}

/// Users that the server carries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsersCost {
    pub before: Estimate,
    pub after: Estimate,
    /// Change, per cent of today's.
    pub percent: Estimate,
}

/// What a change costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    pub question: Question,
    /// By command, most added time first.
    pub commands: Vec<CommandCost>,
    /// Added to all operations together, ns.
    pub added_ns: Estimate,
    /// Time of all operations today, ns.
    pub before_ns: f64,
    /// Change of that time, per cent.
    pub percent: Estimate,
    /// Response times of a load run's scenarios, with the client's work.
    pub scenarios: Option<CommandCost>,
    /// Added to Reads and Writes for each MiB that they move, ns; none where a recording moves too few.
    pub ns_per_mib: Option<Estimate>,
    /// Added CPU time of the server for each GB, s; none where a recording moves too little.
    pub cpu_s_per_gb: Option<Estimate>,
    /// Added CPU time of the server for each operation, ns.
    pub cpu_ns_per_operation: Option<Estimate>,
    pub users: Option<UsersCost>,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

impl Predicted {
    /// From the answer to a question.
    pub fn from_question(question: Question, numbers: &Numbers) -> Predicted {
        let commands = numbers.commands.iter().filter(|one| one.n > 0);
        let mut commands: Vec<_> = commands.map(CommandCost::from_row).collect();
        let total = |one: &CommandCost| one.n as f64 * one.added_ns.value;
        commands.sort_by(|one, other| total(other).total_cmp(&total(one)));
        let errors = numbers.commands.iter().map(|one| {
            let error = one.n as f64 * one.change_error_ns.unwrap_or(0.0);
            (one.name.as_str(), error)
        });
        let errors: Vec<_> = errors.collect();
        let added = sum(&commands, &errors, |_| true);
        let before_ns: f64 = commands.iter().map(|one| one.n as f64 * one.before_ns).sum();
        let moved = sum(&commands, &errors, |name| matches!(name, "Read" | "Write"));
        let (mib, gb) = (numbers.moved_bytes as f64 / MIB, numbers.moved_bytes as f64 / GB);
        let operations = commands.iter().map(|one| one.n).sum::<u64>() as f64;
        let cpu = |unit: f64| {
            let value = numbers.server_cpu_ns? / unit;
            Some(Estimate::new(value, CALIBRATION_ERROR * value))
        };
        let percent = if before_ns > 0.0 { 100.0 / before_ns } else { 0.0 };
        Predicted {
            question,
            commands,
            added_ns: added,
            before_ns,
            percent: added.times(percent),
            scenarios: numbers.scenarios.as_ref().map(CommandCost::from_row),
            ns_per_mib: (mib >= MOVED_MIB_MIN).then(|| moved.times(1.0 / mib)),
            cpu_s_per_gb: cpu(1e9 * gb).filter(|_| gb >= MOVED_GB_MIN),
            cpu_ns_per_operation: cpu(operations).filter(|_| operations > 0.0),
            users: numbers.users_before.zip(numbers.users_after).and_then(users),
            notes: numbers.notes.clone(),
            warnings: numbers.warnings.clone(),
        }
    }
}

/// The sum over commands; the calibration's error is common to all, the others are independent.
fn sum(commands: &[CommandCost], errors: &[(&str, f64)], is_of: impl Fn(&str) -> bool) -> Estimate {
    let of = commands.iter().filter(|one| is_of(&one.name));
    let value: f64 = of.map(|one| one.n as f64 * one.added_ns.value).sum();
    let squares: f64 =
        errors.iter().filter(|one| is_of(one.0)).map(|(_, error)| error.powi(2)).sum();
    Estimate::new(value, squares.sqrt().hypot(CALIBRATION_ERROR * value))
}

/// Both capacities follow from one demand e: r = e / (e + more), so an error of e changes both alike, and that of r is
/// r (1 - r) times the errors of e and of what is added.
fn users((before, after): ((f64, f64), (f64, f64))) -> Option<UsersCost> {
    if before.0 <= 0.0 {
        return None;
    }
    let ratio = after.0 / before.0;
    let error = ratio * (1.0 - ratio) * CALIBRATION_ERROR.hypot(before.1 / before.0);
    Some(UsersCost {
        before: Estimate::new(before.0, before.1),
        after: Estimate::new(after.0, after.1),
        percent: Estimate::new(100.0 * (ratio - 1.0), 100.0 * error),
    })
}
