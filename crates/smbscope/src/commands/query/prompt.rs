//! The interactive prompt: statements of several lines up to `;`, a persistent history, and commands
//! that begin with a backslash. Ctrl-C cancels the running query or the line, Ctrl-D exits.

use std::path::PathBuf;
use std::sync::Arc;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use smbscope_store::sql::Engine;
use smbscope_store::{Table, questions};

use super::answer::{self, Form};
use super::{question, question_list, statements};
use crate::commands::schema::table_text;
use crate::exit::{Code, code_of};
use crate::output::Output;
use crate::{interrupt, one_line};

const PROMPT: &str = "smbscope> ";
const CONTINUED: &str = "       -> ";
const HISTORY_MAX: usize = 1000;

const HELP: &str = "\
A statement ends with `;` and may span several lines.
  \\d               list the tables
  \\d TABLE         list the columns of a table
  \\questions       list the named questions
  \\question NAME   run a named question
  \\q               exit (or Ctrl-D)
Ctrl-C cancels the running query.
";

/// Reads and runs statements until the user exits.
pub fn run(engine: &Arc<Engine>, form: &Form, inputs: &[String]) -> anyhow::Result<()> {
    let config = Config::builder()
        .max_history_size(HISTORY_MAX)?
        .auto_add_history(false)
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<Words, DefaultHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Words::new()));
    let history = history_file();
    if let Some(path) = &history {
        // It does not exist the first time.
        let _ = editor.load_history(path);
    }
    form.verbosity.say(&format!("SQL over {}; \\? for help, \\q to exit", inputs.join(", ")));
    let mut pending = String::new();
    loop {
        let line = editor.readline(if pending.is_empty() { PROMPT } else { CONTINUED });
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        let entry = line.trim();
        if pending.is_empty() && entry.starts_with('\\') {
            editor.add_history_entry(entry)?;
            if matches!(entry, "\\q" | "\\quit") {
                break;
            }
            report_error(command(engine, form, entry))?;
            continue;
        }
        pending.push_str(&line);
        pending.push('\n');
        let (complete, rest) = statements::complete(&pending);
        if !complete.is_empty() {
            editor.add_history_entry(pending.trim())?;
        }
        pending = if statements::is_blank(rest) { String::new() } else { rest.to_owned() };
        for sql in complete {
            report_error(answer::write(engine, &sql, form))?;
        }
    }
    if let Some(path) = &history {
        // Failing to save the history is not an error.
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = editor.save_history(path);
    }
    Ok(())
}

/// The words of SQL that are completed.
const KEYWORDS: [&str; 40] = [
    "and",
    "as",
    "asc",
    "avg(",
    "between",
    "by",
    "case",
    "count(",
    "cross",
    "desc",
    "describe",
    "distinct",
    "else",
    "end",
    "explain",
    "from",
    "group",
    "having",
    "in",
    "inner",
    "is",
    "join",
    "left",
    "like",
    "limit",
    "max(",
    "min(",
    "not",
    "null",
    "on",
    "or",
    "order",
    "over",
    "percentile(",
    "select",
    "sum(",
    "then",
    "union",
    "when",
    "where",
];

/// Completes the word before the cursor: keywords, tables, columns, and the prompt's commands.
struct Words(Vec<String>);

impl Words {
    fn new() -> Words {
        let mut words: Vec<String> = KEYWORDS.iter().map(ToString::to_string).collect();
        for table in Table::ALL {
            words.push(table.name().to_owned());
            words.extend(table.schema().fields().iter().map(|field| field.name().clone()));
        }
        let commands = ["\\d", "\\questions", "\\question", "\\q"];
        words.extend(commands.iter().map(ToString::to_string));
        words.extend(questions::list().iter().map(|question| question.name.to_owned()));
        words.sort();
        words.dedup();
        Words(words)
    }

    /// Where the word before the cursor begins, and what it may become.
    fn of(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let before = line.get(..cursor).unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || "_-\\".contains(c);
        let begin = before.rfind(|c| !is_word(c)).map_or(0, |place| {
            place
                + before.get(place..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let word = before.get(begin..).unwrap_or_default().to_lowercase();
        let fits = |known: &&String| known.to_lowercase().starts_with(&word);
        if word.is_empty() {
            (begin, Vec::new())
        } else {
            (begin, self.0.iter().filter(fits).cloned().collect())
        }
    }
}

impl Helper for Words {}

impl Highlighter for Words {}

impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.of(line, cursor))
    }
}

/// Prints an error and continues, unless the output was closed.
fn report_error(result: anyhow::Result<()>) -> anyhow::Result<()> {
    interrupt::reset();
    match result {
        Err(error) if code_of(&error) == Code::Ok => Err(error),
        Err(error) => {
            anstream::eprintln!("{}", one_line(&error));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn command(engine: &Arc<Engine>, form: &Form, entry: &str) -> anyhow::Result<()> {
    let mut words = entry.split_whitespace();
    let (name, argument) = (words.next().unwrap_or_default(), words.next());
    let mut output = Output::stdout();
    let text = match (name, argument) {
        ("\\question", Some(name)) => {
            let form = Form { readable: true, ..form.clone() };
            return answer::write(engine, &question(name)?, &form);
        }
        ("\\questions" | "\\question", _) => question_list(&output),
        ("\\d", None) => Table::ALL.map(|table| format!("{}\n", table.name())).concat(),
        ("\\d", Some(name)) => match Table::from_name(name.trim_end_matches(';')) {
            Some(table) => table_text(table, &output),
            None => anyhow::bail!("{name}: no such table; \\d lists them"),
        },
        ("\\?" | "\\h" | "\\help", _) => HELP.to_owned(),
        _ => anyhow::bail!("{name}: no such command; \\? lists them"),
    };
    output.text(&text)?;
    output.finish()
}

/// `$XDG_STATE_HOME/smbscope/history` (XDG Base Directory Specification).
fn history_file() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))?;
    Some(state.join("smbscope").join("history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        let words = Words::new();
        let of = |line: &str| words.of(line, line.len());
        assert_eq!(of("sel"), (0, vec!["select".to_owned()]));
        assert_eq!(of("select elapsed"), (7, vec!["elapsed_ns".to_owned()]));
        assert_eq!(of("select max(o.turnar"), (13, vec!["turnaround_ns".to_owned()]));
        assert_eq!(of("\\quest"), (0, vec!["\\question".to_owned(), "\\questions".to_owned()]));
        assert!(of("\\question slow").1.contains(&"slowest-operations".to_owned()));
        assert_eq!(of("select ").1, Vec::<String>::new());
        assert_eq!(of("").1, Vec::<String>::new());
        assert_eq!(of("größe sel"), (8, vec!["select".to_owned()]));
    }
}
