//! Converts DataFusion's errors to messages of one sentence.

use datafusion::error::DataFusionError;

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
            let text = lower(first_line(&text)).replace("smbscope.main.", "");
            format!("{text} (DESCRIBE table lists the columns)")
        }
        DataFusionError::Plan(text) => plan(text),
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
        other => first_line(&other.strip_backtrace()).to_owned(),
    }
}

fn plan(text: &str) -> String {
    let text = first_line(text).replace("smbscope.main.", "");
    if text.starts_with("table '") && text.ends_with("not found") {
        return format!("{text} (SHOW TABLES lists them)");
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
