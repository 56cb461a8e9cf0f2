//! Test: every command that the program or its documents recommend is one that the program takes.
//!
//! Commands are read from string literals and help texts of the source, from scripts that the program writes, and
//! from the documents: whole lines, code in backticks, and mentions in sentences. A mention of a command
//! alone (`smbscope record`) names it; one with options or arguments must parse as it is printed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};

use crate::cli::Cli;
use crate::commands::record::windows;

/// Fewer commands than this would mean that the search is broken.
const COMMANDS_MIN: usize = 300;
/// What traces of CPUs that the program records have as their format.
const TRACE_FORMAT: &str = "smbscope record --cpu";

#[test]
fn every_recommended_command_is_one_that_the_program_takes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "docs"] {
        walk(&root.join(folder), &mut files);
    }
    files.push(root.join("README.md"));
    let (mut seen, mut bad) = (0, Vec::new());
    let mut known = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let texts = if file.extension().is_some_and(|end| end == "rs") {
            literals(&text)
        } else {
            vec![text]
        };
        for command in texts.iter().flat_map(|text| commands(text)) {
            seen += 1;
            let refusal = known
                .entry((command.words.clone(), command.is_prose))
                .or_insert_with(|| refusal(&command));
            if let Some(error) = refusal {
                bad.push(format!("{}: {}\n    {error}", file.display(), command.words.join(" ")));
            }
        }
    }
    assert!(seen >= COMMANDS_MIN, "only {seen} commands found");
    assert!(bad.is_empty(), "{} of {seen} commands fail:\n{}", bad.len(), bad.join("\n"));
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            // What tests print is not recommended.
            if !["tests", "snapshots", "target", "testing"].contains(&name.as_str()) {
                walk(&path, files);
            }
        } else if [".rs", ".md", ".cmd", ".ps1"].iter().any(|end| name.ends_with(end))
            && !["tests.rs", "recommended.rs"].contains(&name.as_str())
        {
            files.push(path);
        }
    }
}

/// The string literals of a source file, and the comments that become help texts.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = vec![doc_comments(source)];
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, here) = rest.split_at(at);
        let raw = before.len() - before.trim_end_matches('#').len();
        let is_raw = before[..before.len() - raw].ends_with('r');
        rest = if here.starts_with("//") {
            here.split_once('\n').map_or("", |(_, after)| after)
        } else if here.starts_with('"') && is_raw {
            let end = format!("\"{}", "#".repeat(raw));
            let (text, after) = here[1..].split_once(&end).unwrap_or((&here[1..], ""));
            found.push(text.to_owned());
            after
        } else if let Some(quoted) = here.strip_prefix('"') {
            let (text, after) = literal(quoted);
            found.push(text);
            after
        } else if here.starts_with("'\"'") || here.starts_with("'/'") {
            &here[3..]
        } else {
            &here[1..]
        };
    }
    found
}

/// A literal behind its quotation mark, and what follows it.
fn literal(source: &str) -> (String, &str) {
    let mut text = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\\']) {
        text.push_str(&rest[..at]);
        if rest[at..].starts_with('"') {
            return (text, &rest[at + 1..]);
        }
        let escaped = &rest[at + 1..];
        match escaped.chars().next() {
            Some('\n') => {
                rest = escaped.trim_start();
                continue;
            }
            Some('n') => text.push('\n'),
            Some(other) => text.push(other),
            None => break,
        }
        rest = &escaped[escaped.chars().next().map_or(0, char::len_utf8)..];
    }
    (text, "")
}

fn doc_comments(source: &str) -> String {
    let lines =
        source.lines().map(|line| line.trim_start().strip_prefix("/// ").unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// A command in words; `is_prose` if a sentence may continue behind it.
struct Command {
    words: Vec<String>,
    is_prose: bool,
}

/// The commands of a text.
fn commands(text: &str) -> Vec<Command> {
    let text = text.replace("\\\n", " ");
    let mut found = Vec::new();
    let mut push = |text: &str, is_prose: bool| {
        let words = words(text);
        let start = words.iter().position(|word| word == "smbscope");
        let words = start.map_or(Vec::new(), |start| words[start..].to_vec());
        if words.get(1).is_some_and(|word| is_command(word)) {
            found.push(Command { words, is_prose });
        }
    };
    for paragraph in text.split("\n\n").flat_map(|text| text.split("```")) {
        let (mut prose, mut parts) = (String::new(), paragraph.split('`'));
        while let Some(outside) = parts.next() {
            prose.push_str(outside);
            if let Some(code) = parts.next() {
                push(&code.replace('\n', " "), false);
                prose.push('|');
            }
        }
        let is_line = |line: &&str| {
            let line = line.trim_start().trim_start_matches("$ ").trim_start_matches("sudo ");
            line.starts_with("smbscope ")
        };
        let (lines, rest): (Vec<_>, Vec<_>) = prose.lines().partition(is_line);
        // Examples are indented; a sentence can begin with a command.
        lines.iter().for_each(|line| push(line, !line.starts_with(' ')));
        let rest = rest.join(" ");
        let ends = [',', ';', ':', '(', ')', '|', '"'];
        for mention in rest.split(ends).flat_map(|part| part.split(". ")) {
            mention.rfind("smbscope ").into_iter().for_each(|at| push(&mention[at..], true));
        }
    }
    found
}

/// The program's command line, which takes long to build.
static COMMAND: LazyLock<clap::Command> = LazyLock::new(Cli::command);

fn is_command(word: &str) -> bool {
    COMMAND.get_subcommands().any(|one| one.get_name() == word)
}

/// The words of a command as a shell splits them, up to a pipe, a redirection or a comment.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\n' | '\t') => words.extend(word.take()),
            (None, '|' | '>' | '<' | '#' | ';' | '&') if word.is_none() => return words,
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Why the program does not take a command; `None` if it does.
fn refusal(command: &Command) -> Option<String> {
    let Command { words, is_prose } = command;
    let mut end = words.len();
    if *is_prose {
        // A sentence continues with a word that is not an option, a value of one, a name or a placeholder.
        let continues = |at: usize| {
            let is_word = words[at].chars().all(|c| c.is_ascii_lowercase());
            is_word && at > 1 && !words[at - 1].starts_with("--")
        };
        let first = if is_name(&words[..words.len().min(3)]) { 3 } else { 2 };
        end = (first..end).find(|&at| continues(at)).unwrap_or(end);
    }
    let mut words: Vec<_> = words[..end].to_vec();
    if let Some(last) = words.last_mut().filter(|_| *is_prose) {
        *last = last.trim_end_matches(['.', ',']).to_owned();
    }
    // Traces have the name of their format; the usage line of a help text is not a command.
    if is_name(&words)
        || words.join(" ") == TRACE_FORMAT
        || words.iter().any(|word| word == "[OPTIONS]")
    {
        return None;
    }
    let least =
        words.iter().rposition(|word| word.starts_with('-')).map_or(words.len(), |at| at + 1);
    let least = if *is_prose { least } else { words.len() };
    let errors = (least..=words.len()).rev().map(|length| parse(&words[..length]));
    errors.reduce(|first, next| first.and_then(|error| next.map(|_| error))).flatten()
}

/// Whether it is the name of a command, without options and arguments.
fn is_name(words: &[String]) -> bool {
    let mut command = &*COMMAND;
    words.iter().skip(1).all(|word| match command.find_subcommand(word) {
        Some(next) => {
            command = next;
            true
        }
        None => false,
    })
}

/// A word without what the program fills in at its end (`down{dir}`); a word of braces alone is a value.
fn without_braces(word: &str) -> &str {
    word.split_once('{').map_or(word, |(front, _)| if front.is_empty() { word } else { front })
}

/// Parses with the program's own definition. Placeholders are values.
fn parse(words: &[String]) -> Option<String> {
    let filled = windows::arguments(words.iter().map(|word| without_braces(word).into()));
    let error = Cli::try_parse_from(filled).err()?;
    let is_placeholder = |text: &str| {
        text.contains(['{', '$'])
            || !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase() || "-_".contains(c))
    };
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if is_placeholder(value) => None,
        _ => Some(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

#[test]
fn commands_are_found_in_lines_code_and_sentences() {
    let found = |text: &str| -> Vec<String> {
        commands(text).iter().map(|command| command.words.join(" ")).collect()
    };
    assert_eq!(found("Use `smbscope report x.pcap` now"), ["smbscope report x.pcap"]);
    assert_eq!(
        found("  sudo smbscope record --out 'a b' \\\n  --cpu > x"),
        ["smbscope record --out a b --cpu"]
    );
    assert_eq!(found("look (smbscope lab up, then more)"), ["smbscope lab up"]);
    assert_eq!(
        literals("f(\"smbscope \\\n   ops x\") // \"no\"\nr#\"a\"b\"#")[1..],
        ["smbscope ops x", "a\"b"]
    );
    let refused = |text: &str| commands(text).iter().filter_map(refusal).count();
    assert_eq!(refused("`smbscope record`, smbscope report INPUT --all lists them"), 0);
    assert_eq!(refused("`smbscope record --out`, `smbscope predict --change rtt=1ms`"), 2);
    assert_eq!(refused("sudo smbscope record ..."), 1);
}
