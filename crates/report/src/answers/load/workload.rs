//! A workload as text: its files, and each scenario with its counts and steps.
//!
//! Owns the layout. What a workload is, and the notation of its requests, belong to the crate `load`; the
//! program passes what is shown as plain data.

use std::fmt::{self, Display};

use crate::value::format;

/// A workload.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    pub name: String,
    pub description: String,
    /// Executions of all scenarios per user and hour.
    pub runs_per_hour: f64,
    /// Mean time between the starts of two executions of one user, s.
    pub interval_s: f64,
    /// The part of each interval in which an execution begins; `None` if the intervals are exponential.
    pub jitter: Option<f64>,
    pub files: Files,
    pub scenarios: Vec<Scenario>,
}

/// The files of one user.
#[derive(Clone, Debug, Default)]
pub struct Files {
    pub count: u64,
    pub bytes: u64,
    /// What runs add at most.
    pub growth_bytes: u64,
    pub pools: Vec<Pool>,
}

/// Files of one kind.
#[derive(Clone, Debug)]
pub struct Pool {
    pub name: String,
    pub class: &'static str,
    /// Whether runs create them: the count is then the most that exist.
    pub is_new: bool,
    pub count: u32,
    /// Their folders; an empty name is the home itself.
    pub folders: Vec<String>,
    pub mean_size: MeanSize,
}

/// The mean size of files.
#[derive(Clone, Copy, Debug)]
pub enum MeanSize {
    Bytes(u64),
    /// Blocks of 64 KiB; how full the last one is differs.
    Blocks(f64),
}

/// A scenario.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    pub name: String,
    pub description: String,
    pub runs_per_hour: f64,
    /// By command: operations of one execution, and those that are later members of a compound.
    pub commands: Vec<(String, f64, f64)>,
    pub operations: f64,
    pub packets: f64,
    /// By client cache: the operations and packets that it saves.
    pub savings: Vec<(String, f64, f64)>,
    pub steps: Vec<Step>,
}

/// A step of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What the application does.
    pub action: String,
    /// Notifications that it waits for.
    pub wait: Vec<String>,
    /// Its requests, one per line; more than one is a compound.
    pub requests: Vec<String>,
}

/// The whole workload as text.
pub fn workload_text(workload: &Workload) -> String {
    workload.to_string()
}

/// A number with two decimals, or none if it is whole.
fn number(value: f64) -> String {
    let hundredths = (value * 100.0).round();
    let decimals = if hundredths % 100.0 == 0.0 { 0 } else { 2 };
    format!("{:.decimals$}", hundredths / 100.0)
}

impl Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n", self.name, self.description)?;
        let count = self.scenarios.len();
        let scenarios = if count == 1 { "scenario" } else { "scenarios" };
        let intervals = match self.jitter {
            Some(jitter) => {
                format!("begun in the first {:.0} % of each such interval", jitter * 100.0)
            }
            None => "at exponential distances".to_owned(),
        };
        writeln!(
            f,
            "{count} {scenarios}, {} executions per user and hour: on average one every {:.2} s, {intervals}",
            number(self.runs_per_hour),
            self.interval_s
        )?;
        self.files.fmt(f)?;
        writeln!(
            f,
            "\nOperations of one execution; in brackets those behind the first of a compound."
        )?;
        self.scenarios.iter().try_for_each(|scenario| scenario.fmt(f))
    }
}

impl Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\nFiles of one user: {}, {:.1} MB", self.count, self.bytes as f64 / 1e6)?;
        if self.growth_bytes > 0 {
            write!(f, "; runs add at most {:.1} MB", self.growth_bytes as f64 / 1e6)?;
        }
        writeln!(f)?;
        self.pools.iter().try_for_each(|pool| pool.fmt(f))
    }
}

impl Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up_to = if self.is_new { "up to " } else { "" };
        let noun = if self.count == 1 { "file" } else { "files" };
        let folders = self.folders.iter().map(String::as_str);
        let folders: Vec<&str> =
            folders.map(|folder| if folder.is_empty() { "the home" } else { folder }).collect();
        let size = match self.mean_size {
            MeanSize::Bytes(bytes) => format::bytes(bytes),
            MeanSize::Blocks(blocks) => format!("{blocks:.2} blocks of 64 KiB"),
        };
        writeln!(
            f,
            "  {:<12} {:<8} {up_to}{} {noun} in {}, {size} on average",
            self.name,
            self.class,
            self.count,
            folders.join(", ")
        )
    }
}

impl Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}: {}", self.name, self.description)?;
        let commands = self.commands.iter().map(|(name, operations, members)| {
            if *members > 0.0 {
                format!("{name} {} ({})", number(*operations), number(*members))
            } else {
                format!("{name} {}", number(*operations))
            }
        });
        let commands: Vec<String> = commands.collect();
        let runs = number(self.runs_per_hour);
        writeln!(f, "  {runs} per user and hour; {}", commands.join(", "))?;
        let (operations, packets) = (number(self.operations), number(self.packets));
        writeln!(f, "  {operations} operations in {packets} packets")?;
        for (cache, operations, packets) in &self.savings {
            let (operations, packets) = (number(*operations), number(*packets));
            writeln!(f, "  {cache} saves {operations} operations, {packets} packets")?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {:>3}. {}", index + 1, step.action)?;
            if !step.wait.is_empty() {
                writeln!(f, "       after {}", step.wait.join(", "))?;
            }
            for (place, request) in step.requests.iter().enumerate() {
                writeln!(f, "       {}{request}", if place > 0 { "+ " } else { "" })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_shown_with_its_counts_and_steps() {
        let pool = Pool {
            name: "docs".to_owned(),
            class: "new",
            is_new: true,
            count: 1,
            folders: vec![String::new(), "Mail".to_owned()],
            mean_size: MeanSize::Blocks(1.5),
        };
        let scenario = Scenario {
            name: "Look".to_owned(),
            description: "a listing".to_owned(),
            runs_per_hour: 2.5,
            commands: vec![("Create".to_owned(), 1.0, 0.0), ("Close".to_owned(), 1.0, 1.0)],
            operations: 105.571,
            packets: 1.0,
            savings: vec![("dirlease".to_owned(), 2.0, 1.0)],
            steps: vec![Step {
                action: "it looks".to_owned(),
                wait: vec!["change".to_owned()],
                requests: vec!["Create {dir}".to_owned(), "Close dir".to_owned()],
            }],
        };
        let workload = Workload {
            name: "mine".to_owned(),
            description: "an example".to_owned(),
            runs_per_hour: 2.5,
            interval_s: 1440.0,
            jitter: Some(0.5),
            files: Files { count: 3, bytes: 2_500_000, growth_bytes: 0, pools: vec![pool] },
            scenarios: vec![scenario],
        };
        assert_eq!(
            workload_text(&workload),
            "\
mine: an example

1 scenario, 2.50 executions per user and hour: on average one every 1440.00 s, begun in the first 50 % of each such interval

Files of one user: 3, 2.5 MB
  docs         new      up to 1 file in the home, Mail, 1.50 blocks of 64 KiB on average

Operations of one execution; in brackets those behind the first of a compound.

Look: a listing
  2.50 per user and hour; Create 1, Close 1 (1)
  105.57 operations in 1 packets
  dirlease saves 2 operations, 1 packets
    1. it looks
       after change
       Create {dir}
       + Close dir
"
        );
    }
}
