//! A command by its name, or all commands that do one kind of work.

use std::fmt;
use std::str::FromStr;

use crate::command_class::CommandClass;
use crate::operation::code::command_names;

/// A command or a class of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandChoice {
    /// One command, by its name in the column `command`.
    Command(&'static str),
    /// A class, with its name.
    Class(CommandClass, &'static str),
}

/// The classes that can be chosen. A word that is also a command (`read`) means the class, which
/// contains that command and its likes in SMB1.
const CLASSES: [(&str, CommandClass); 15] = [
    ("open", CommandClass::Open),
    ("close", CommandClass::Close),
    ("read", CommandClass::Read),
    ("write", CommandClass::Write),
    ("flush", CommandClass::Flush),
    ("lock", CommandClass::Lock),
    ("ioctl", CommandClass::Ioctl),
    ("list", CommandClass::List),
    ("notify", CommandClass::Notify),
    ("query", CommandClass::Query),
    ("set", CommandClass::Set),
    ("namespace", CommandClass::Namespace),
    ("session", CommandClass::Session),
    ("break", CommandClass::Break),
    ("cancel", CommandClass::Cancel),
];

/// A name that is neither a command nor a class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such command{}; classes of commands are {}", hint(.near), classes())]
pub struct UnknownCommand {
    /// Similar names, the most similar first.
    pub near: Vec<&'static str>,
}

impl CommandChoice {
    /// Whether an operation's command is this one. `detail` decides for SMB1's transactions.
    pub fn matches(self, command: &str, detail: Option<&str>) -> bool {
        match self {
            CommandChoice::Command(name) => name == command,
            CommandChoice::Class(class, _) => match CommandClass::from_command(command) {
                CommandClass::Transaction => {
                    detail.is_some_and(|detail| CommandClass::of_subcommand(detail) == class)
                }
                of => of == class,
            },
        }
    }

    /// Whether [`CommandChoice::matches`] needs the detail of this command.
    pub fn needs_detail(self, command: &str) -> bool {
        matches!(self, CommandChoice::Class(..))
            && CommandClass::from_command(command) == CommandClass::Transaction
    }
}

impl FromStr for CommandChoice {
    type Err = UnknownCommand;

    fn from_str(text: &str) -> Result<CommandChoice, UnknownCommand> {
        let text = text.trim();
        if let Some((name, class)) =
            CLASSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text))
        {
            return Ok(CommandChoice::Class(*class, name));
        }
        let names = command_names();
        if let Some(name) = names.iter().find(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(CommandChoice::Command(name));
        }
        let wanted = text.to_ascii_lowercase();
        let all = names.into_iter().chain(CLASSES.iter().map(|(name, _)| *name));
        let mut near: Vec<_> = all
            .map(|name| (distance(&wanted, &name.to_ascii_lowercase()), name))
            .filter(|(distance, name)| *distance <= 1 + name.len().min(wanted.len()) / 3)
            .collect();
        near.sort_unstable();
        near.dedup_by(|a, b| a.1.eq_ignore_ascii_case(b.1));
        Err(UnknownCommand { near: near.into_iter().map(|(_, name)| name).take(3).collect() })
    }
}

impl fmt::Display for CommandChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandChoice::Command(name) | CommandChoice::Class(_, name) => f.write_str(name),
        }
    }
}

fn hint(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        near => format!(" (similar: {})", near.join(", ")),
    }
}

fn classes() -> String {
    CLASSES.map(|(name, _)| name).join(", ")
}

/// Insertions, deletions and replacements from one text to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (place, one) in a.chars().take(64).enumerate() {
        let mut diagonal = place;
        let mut left = place + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, other) in row.iter_mut().skip(1).zip(&b) {
            let replaced = diagonal + usize::from(one != *other);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> CommandChoice {
        text.parse().unwrap()
    }

    #[test]
    fn names_and_classes_are_found_in_any_case() {
        assert_eq!(choice("create"), CommandChoice::Command("Create"));
        assert_eq!(choice("QUERYINFO"), CommandChoice::Command("QueryInfo"));
        assert!(choice("Read").matches("Read", None) && choice("read").matches("ReadAndX", None));
        assert!(!choice("Create").matches("NtCreateAndX", None));
        assert!(
            choice("open").matches("NtCreateAndX", None) && choice("open").matches("Create", None)
        );
        assert!(choice("list").matches("Transaction2", Some("Trans2FindFirst2 level")));
        assert!(!choice("list").matches("Transaction2", Some("Trans2Open2")));
        assert!(
            choice("list").needs_detail("Transaction2") && !choice("list").needs_detail("Read")
        );
        assert_eq!(choice("open").to_string(), "open");
    }

    #[test]
    fn an_unknown_name_suggests_similar_ones() {
        let error = "Creates".parse::<CommandChoice>().unwrap_err();
        assert_eq!(error.near.first(), Some(&"Create"), "{error}");
        assert!(error.to_string().starts_with("no such command (similar: Create"), "{error}");
        let error = "xyzzyplugh".parse::<CommandChoice>().unwrap_err();
        assert!(
            error.near.is_empty() && error.to_string().contains("open, close, read"),
            "{error}"
        );
        assert_eq!(
            (distance("kitten", "sitting"), distance("", "ab"), distance("ab", "")),
            (3, 2, 2)
        );
    }
}
