//! Which arguments of `smbscope query` are inputs and which one is the SQL.
//!
//! The last argument is the SQL if it begins like a query and no file has that name; all others are
//! inputs. So a mistyped name is reported as a missing input, not as wrong SQL.

use std::path::Path;

use smbscope_store as store;

use crate::cli::Query;
use crate::exit::{Code, Failure};

const FIRST_WORDS: [&str; 9] =
    ["select", "with", "explain", "describe", "desc", "show", "values", "table", "from"];

/// The inputs and, if the arguments contain it, the SQL.
pub fn resolve(args: &Query) -> anyhow::Result<(Vec<String>, Option<String>)> {
    let mut inputs = args.arguments.clone();
    let elsewhere = args.file.is_some() || args.question.is_some();
    let is_sql = |last: &String| !elsewhere && !exists(last) && begins_like_sql(last);
    let sql = if inputs.last().is_some_and(is_sql) { inputs.pop() } else { None };
    if inputs.is_empty() {
        return Err(Failure::usage(
            "no input: write capture files, datasets or `-` before the SQL (see `smbscope query --help`)",
        ));
    }
    Ok((inputs, sql))
}

/// Extends the error if the last of the `inputs` arguments does not exist and may be meant as SQL.
pub fn explain(error: anyhow::Error, args: &Query, inputs: usize) -> anyhow::Error {
    let missing = match error.downcast_ref::<store::Error>() {
        Some(store::Error::NotFound(path)) => path.clone(),
        _ => return error,
    };
    let last = args.arguments.get(inputs.saturating_sub(1)).map(Path::new);
    if inputs < 2 || last != Some(missing.as_path()) || !missing.to_string_lossy().contains(' ') {
        return error;
    }
    let words =
        "no such file, and not SQL, which begins with select, with, explain, describe or show";
    Failure::new(Code::Input, format!("{}: {words}", missing.display())).into()
}

fn exists(argument: &str) -> bool {
    // SQL can be longer than a file name may be; that error also means that no such file exists.
    argument == "-" || Path::new(argument).symlink_metadata().is_ok()
}

fn begins_like_sql(argument: &str) -> bool {
    let mut rest = argument.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    if rest.starts_with("--") || rest.starts_with("/*") {
        return true;
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    // A single word is not a query, and a word followed by a dot or slash is a file name.
    if rest.get(end..).is_none_or(|tail| tail.is_empty() || tail.starts_with(['.', '/'])) {
        return false;
    }
    rest = rest.get(..end).unwrap_or_default();
    FIRST_WORDS.iter().any(|word| word.eq_ignore_ascii_case(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_is_distinguished_from_names() {
        for sql in [
            "select 1",
            "SELECT*FROM operations",
            "  (select 1)",
            "with a as (select 1) select * from a",
            "-- a comment\nselect 1",
            "explain analyze select 1",
            "show tables",
            "select\n1",
        ] {
            assert!(begins_like_sql(sql), "{sql}");
        }
        for name in ["select.pcap", "select/monday.pcap", "a.pcap", "with", "selection 1", "", "é"]
        {
            assert!(!begins_like_sql(name), "{name}");
        }
    }
}
