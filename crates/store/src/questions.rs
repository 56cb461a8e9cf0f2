//! Named questions: `.sql` files in `questions/`, compiled into the program.
//!
//! A file begins with comment lines: the first is the title, the others say what the answer shows.
//! The SQL may contain placeholders in braces, so that a new slice kind ([`smbscope_tables::slice`]) needs no change
//! here:
//!
//! | placeholder | replaced by |
//! |---|---|
//! | `{queue}`, `{processing}`, `{filesystem}`, `{locks}`, `{send}` | the sum of the columns of that group |
//! | `{parts}` | the sum of the columns of all disjoint parts of the turnaround |
//! | `{part_columns}` | the names of these columns, separated by commas |
//! | `{slice_columns}` | the names of the columns of all kinds |
//! | `{errors}`, `{files}`, `{latency_columns}` | what several questions share: `questions/parts/` |

use smbscope_tables::slice::{Group, Kind};

/// One named question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its name: the file's name without the extension.
    pub name: &'static str,
    template: &'static str,
}

impl Question {
    /// What it is about, in a few words.
    pub fn title(&self) -> &'static str {
        self.comments().next().unwrap_or_default()
    }

    /// What the answer shows and how to read it.
    pub fn help(&self) -> String {
        self.comments().skip(1).collect::<Vec<_>>().join(" ")
    }

    /// The SQL.
    pub fn sql(&self) -> String {
        let names = |kinds: &mut dyn Iterator<Item = Kind>| {
            kinds.map(Kind::column_name).collect::<Vec<_>>().join(", ")
        };
        let mut sql = self.template.to_owned();
        for (placeholder, part) in PARTS {
            sql = sql.replace(placeholder, part.trim_end());
        }
        for group in Group::ALL {
            let kinds = Kind::parts().filter(|kind| kind.group() == Some(group));
            sql = sql.replace(&format!("{{{}}}", group.name()), &sum(kinds));
        }
        sql.replace("{parts}", &sum(Kind::parts()))
            .replace("{part_columns}", &names(&mut Kind::parts()))
            .replace("{slice_columns}", &names(&mut Kind::ALL.iter().copied()))
    }

    fn comments(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.template.lines().map_while(|line| line.strip_prefix("--")).map(str::trim)
    }
}

/// The sum of the columns of `kinds`, as SQL; a kind that an operation does not have counts as 0.
fn sum(kinds: impl Iterator<Item = Kind>) -> String {
    let terms = kinds.map(|kind| format!("coalesce({}, 0)", kind.column_name()));
    terms.collect::<Vec<_>>().join(" + ")
}

/// Whether a row of `operations` failed, as SQL: like in the report, without names that do not exist and without
/// statuses that are part of normal operation.
pub const ERRORS: &str = include_str!("../questions/parts/errors.sql");

/// Placeholders of what several questions share.
const PARTS: [(&str, &str); 3] = [
    ("{errors}", ERRORS),
    ("{files}", include_str!("../questions/parts/files.sql")),
    ("{latency_columns}", include_str!("../questions/parts/latency_columns.sql")),
];

macro_rules! questions {
    ($($name:literal)*) => {
        &[$(Question { name: $name, template: include_str!(concat!("../questions/", $name, ".sql")) },)*]
    };
}

const QUESTIONS: &[Question] = questions! {
    "breaks"
    "busiest-stacks"
    "capacity-curve"
    "chatty-paths"
    "commands-by-scenario"
    "compounds"
    "connections-with-loss"
    "counters-by-step"
    "counters-over-time"
    "credits"
    "errors-by-step"
    "errors"
    "failed-opens"
    "handles-left-open"
    "idle-states"
    "interrupt-delays"
    "interrupts-by-cpu"
    "interrupts-by-function"
    "interrupts-by-module"
    "interrupts-over-limit"
    "io-sizes"
    "latency-by-client"
    "latency-by-command"
    "latency-by-share"
    "latency-by-user"
    "nic-queue-spread"
    "operations-of-slow-scenarios"
    "protection"
    "scenario-response-times"
    "scenarios-over-time"
    "server"
    "slow-server"
    "slowest-operations"
    "think-time"
    "timeline"
    "top-files-by-bytes"
    "top-files-by-opens"
    "top-files-by-time"
    "users-behind-schedule"
};

/// All questions, sorted by name.
pub fn list() -> &'static [Question] {
    QUESTIONS
}

/// The question of that name.
pub fn get(name: &str) -> Option<&'static Question> {
    QUESTIONS.iter().find(|question| question.name == name)
}

#[cfg(test)]
mod tests;
