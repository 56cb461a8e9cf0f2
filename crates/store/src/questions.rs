//! The questions that have a name: `.sql` files in `questions/`, part of the program.
//!
//! A file begins with comment lines: the first is the title, the others say what the answer shows.

/// One named question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its name: the file's without the ending.
    pub name: &'static str,
    /// The file.
    pub sql: &'static str,
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

    fn comments(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.sql.lines().map_while(|line| line.strip_prefix("--")).map(str::trim)
    }
}

macro_rules! questions {
    ($($name:literal)*) => {
        &[$(Question { name: $name, sql: include_str!(concat!("../questions/", $name, ".sql")) },)*]
    };
}

const QUESTIONS: &[Question] = questions! {
    "breaks"
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
    "io-sizes"
    "latency-by-client"
    "latency-by-command"
    "latency-by-share"
    "latency-by-user"
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

/// All questions, by name.
pub fn list() -> &'static [Question] {
    QUESTIONS
}

/// The question of that name.
pub fn get(name: &str) -> Option<&'static Question> {
    QUESTIONS.iter().find(|question| question.name == name)
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
