//! The latency model on means: a scenario's time is a sum.
//!
//! time = round trip x round trips + sum over commands of (queue + processing + file system +
//! constant) x operations. The members of a compound that are not its first cost no round trip
//! (D. Lovinger, D. Kruse, SDC 2010). It holds where one operation waits for the previous one, and
//! where queues stay as they are: it does not include how a change alters the load of the server.

use smbscope_tables::profile::{CacheOption, CommandProfile, Cost, Profile, Variant};

use super::Z_95;

/// The name of all scenarios together.
pub const TOTAL: &str = "Total";

/// The time that one user spends in an hour on one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its name, or [`TOTAL`].
    pub scenario: String,
    /// The clients' cache.
    pub option: CacheOption,
    /// Round trips, s.
    pub network_s: f64,
    /// The server's parts, s.
    pub server_s: f64,
    /// The rest, s.
    pub constant_s: f64,
    /// Half of the 95 % interval from the errors of the means, s; it does not include what the model leaves
    /// out.
    pub error_s: f64,
}

impl Cell {
    /// All of it, s.
    pub fn seconds(&self) -> f64 {
        self.network_s + self.server_s + self.constant_s
    }
}

/// Every scenario with every option, then their totals.
pub fn table(profile: &Profile) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut totals = Vec::new();
    for option in CacheOption::ALL {
        let mut total = Cell {
            scenario: TOTAL.to_owned(),
            option,
            network_s: 0.0,
            server_s: 0.0,
            constant_s: 0.0,
            error_s: 0.0,
        };
        // The errors of a command's means are the same in all scenarios: they add up by command.
        let mut operations = vec![0.0; profile.commands.len()];
        for scenario in &profile.scenarios {
            let found = scenario.variants.iter().find(|variant| variant.option == option);
            let Some(variant) = found else { continue };
            let runs = scenario.runs_per_hour;
            let constants = |cost: &Cost| cost.constant_s;
            let cell = Cell {
                scenario: scenario.scenario.clone(),
                option,
                network_s: runs * variant.round_trips * profile.rtt_s,
                server_s: runs * sum_s(&profile.commands, variant, Cost::server_s),
                constant_s: runs
                    * (sum_s(&profile.commands, variant, constants) + variant.between_s),
                error_s: error_s(
                    &profile.commands,
                    variant.operations.iter().map(|count| runs * count),
                ),
            };
            for (sum, count) in operations.iter_mut().zip(&variant.operations) {
                *sum += runs * count;
            }
            total.network_s += cell.network_s;
            total.server_s += cell.server_s;
            total.constant_s += cell.constant_s;
            cells.push(cell);
        }
        if cells.iter().any(|cell: &Cell| cell.option == option) {
            total.error_s = error_s(&profile.commands, operations);
            totals.push(total);
        }
    }
    // Scenario by scenario, not option by option.
    let place =
        |cell: &Cell| profile.scenarios.iter().position(|one| one.scenario == cell.scenario);
    cells.sort_by_key(|cell| (place(cell), cell.option));
    cells.extend(totals);
    cells
}

/// What the operations of one execution cost, s.
pub(super) fn sum_s(
    commands: &[CommandProfile],
    variant: &Variant,
    of: impl Fn(&Cost) -> f64,
) -> f64 {
    let costs = commands.iter().zip(&variant.operations);
    costs.map(|(command, count)| count * of(&command.cost)).sum()
}

/// Half of the 95 % interval of the given number of operations at means that were measured with an error.
fn error_s(commands: &[CommandProfile], operations: impl IntoIterator<Item = f64>) -> f64 {
    let squares = commands.iter().zip(operations).map(|(CommandProfile { cost, .. }, count)| {
        if cost.count == 0 {
            return 0.0;
        }
        let variance: f64 = cost.parts.iter().map(|part| part.stddev_s * part.stddev_s).sum();
        count * count * variance / cost.count as f64
    });
    Z_95 * squares.sum::<f64>().sqrt()
}
