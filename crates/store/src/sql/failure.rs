//! Converts DataFusion's errors to messages of one sentence.

use datafusion::error::DataFusionError;
use smbscope_tables::code::command_names;

use crate::error::Error;

/// An error before the first row: the SQL or the inputs are wrong.
pub(super) fn planning(error: DataFusionError) -> Error {
    Error::Sql(sentence(&error))
}

/// An error while the query runs.
pub(super) fn running(error: DataFusionError) -> Error {
    Error::Query(sentence(&error))
}

/// An error of this crate that passes through DataFusion.
pub(super) fn outside(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn sentence(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            sentence(inner)
        }
        DataFusionError::Shared(inner) => sentence(inner),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => sentence(first),
            None => "the query failed".to_owned(),
        },
        DataFusionError::External(inner) => inner.to_string(),
        DataFusionError::SchemaError(inner, _) => {
            // A list of all columns follows on a separate line.
            let text = inner.to_string();
            field(&lower(first_line(&text)).replace("smbscope.main.", ""))
        }
        DataFusionError::Plan(text) => arguments(text).unwrap_or_else(|| plan(text)),
        DataFusionError::SQL(inner, _) => {
            let text = inner.to_string();
            format!("invalid SQL: {}", text.trim_start_matches("sql parser error: "))
        }
        DataFusionError::ResourcesExhausted(_) => {
            "the query exceeds its memory limit: group by fewer values or add a filter".to_owned()
        }
        DataFusionError::NotImplemented(text) if text.contains("single SQL statement") => {
            "only one statement is allowed at a time".to_owned()
        }
        DataFusionError::Execution(text) | DataFusionError::NotImplemented(text) => {
            first_line(text).to_owned()
        }
        other => {
            let text = other.strip_backtrace();
            arguments(&text).unwrap_or_else(|| first_line(&text).to_owned())
        }
    }
}

/// A column that does not exist: perhaps it was meant as text.
fn field(text: &str) -> String {
    const LISTED: &str = "(DESCRIBE table lists the columns)";
    let Some(rest) = text.strip_prefix("no field named ") else {
        return format!("{text} {LISTED}");
    };
    let name = rest.split([' ', '.']).next().unwrap_or_default().trim_matches('"');
    let value = command_names().into_iter().find(|value| value.eq_ignore_ascii_case(name));
    if let Some(value) = value {
        return format!("no field named {name}: text is written in single quotes, '{value}'");
    }
    // A suggestion that has little in common with what was written misleads.
    match rest.split_once(". Did you mean '") {
        Some((_, suggestion)) if !is_close(name, suggestion.trim_end_matches("'?")) => {
            format!("no field named {name} {LISTED}")
        }
        _ => format!("{text} {LISTED}"),
    }
}

/// Whether at most a third of the letters differ, the table's name apart.
fn is_close(name: &str, suggestion: &str) -> bool {
    let suggestion = suggestion.rsplit('.').next().unwrap_or(suggestion);
    strsim::levenshtein(name, suggestion) * 3 <= name.chars().count()
}

/// A function with arguments of types that it does not take.
fn arguments(text: &str) -> Option<String> {
    let name = |before: &str| Some(text.split_once(before)?.1.split_once('\'')?.0);
    if let Some(function) =
        name("Function '").filter(|_| text.contains("failed to match any signature"))
    {
        let received = text.split_once("but received ")?.1;
        let received = match received.split([' ', '(']).next()? {
            "String" => "text",
            other => other,
        };
        return Some(format!(
            "{function}() does not take {received}: it needs numbers or times (count, min and max take any type)"
        ));
    }
    let function = name("satisfy a call to '")?;
    Some(match function {
        "percentile" => "percentile(x, p) needs a number of nanoseconds, bytes or the like, and a share from 0 to 1: percentile(elapsed_ns, 0.95)".to_owned(),
        _ => format!("{function}() does not take arguments of these types"),
    })
}

fn plan(text: &str) -> String {
    let text = first_line(text).replace("smbscope.main.", "");
    if text.starts_with("table '") && text.ends_with("not found") {
        return format!("{text} (SHOW TABLES lists them)");
    }
    if let Some(name) = text.strip_prefix("Invalid function '") {
        let name = name.split('\'').next().unwrap_or_default();
        return format!("there is no function {name} (SHOW FUNCTIONS lists them)");
    }
    if text.contains("not supported: ") {
        return format!("{text}: queries are read-only");
    }
    text
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
