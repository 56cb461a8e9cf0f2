//! Which rows the page shows: the chips above it, as conditions in SQL and as the filter of a report.
//!
//! The same filter is part of the page's address. Values of one dimension are alternatives; dimensions,
//! the period and the least duration must all hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smbscope_tables::filter::Filter as RowFilter;

use crate::error::{Error, Result};
use crate::subject::{Form, Subject};

/// Most values of one filter.
const VALUES_MAX: usize = 1_000;

/// The chips. Numbers are strings: a browser cannot hold nanoseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// The row began at this time or later, ns since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The row began before this time, ns since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The operation took this long or longer, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slower: Option<String>,
    /// Values by the key of their dimension; null is what is not known.
    #[serde(rename = "in", skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Vec<Option<String>>>,
}

impl Filter {
    /// The period, ns since 1970.
    ///
    /// # Errors
    ///
    /// If a time is not a number.
    pub fn period(&self) -> Result<(Option<i64>, Option<i64>)> {
        Ok((number(self.from.as_deref())?, number(self.to.as_deref())?))
    }

    /// What rows of a subject must meet, as SQL. Conditions on dimensions that it does not have are left out.
    ///
    /// # Errors
    ///
    /// If a dimension is unknown, or a value is not of its form.
    pub fn sql(&self, subject: &Subject, offset_s: i32) -> Result<String> {
        let mut conditions = self.conditions(subject, offset_s)?;
        let (from, to) = self.period()?;
        let time = subject.time;
        conditions.extend(from.map(|from| format!("{time} >= {from}")));
        conditions.extend(to.map(|to| format!("{time} < {to}")));
        Ok(conditions.join(" AND "))
    }

    /// The same without the period.
    ///
    /// # Errors
    ///
    /// Those of [`Filter::sql`].
    pub fn conditions(&self, subject: &Subject, offset_s: i32) -> Result<Vec<String>> {
        let mut conditions = vec![subject.counted.to_owned()];
        if self.values.values().map(Vec::len).sum::<usize>() > VALUES_MAX {
            return Err(Error::request(format!("a filter has at most {VALUES_MAX} values")));
        }
        for (key, values) in &self.values {
            let Some(dimension) = subject.dimension(key) else {
                if Subject::ALL.iter().any(|other| other.dimension(key).is_some()) {
                    continue;
                }
                return Err(Error::request(format!("there is no dimension {key}")));
            };
            // A part of the time is one of a row's, and not a reason to leave the row out.
            if dimension.form == Form::Slice {
                continue;
            }
            conditions.push(condition(&dimension.sql(offset_s), dimension.form, values)?);
        }
        if let Some(slower) = number(self.slower.as_deref())?
            && subject.table == "operations"
        {
            conditions.push(format!("elapsed_ns >= {slower}"));
        }
        Ok(conditions)
    }

    /// The values of the parts of an operation's time.
    pub fn slices(&self) -> Option<&[Option<String>]> {
        self.values.get("slice").map(Vec::as_slice)
    }

    /// The filter of a report, as far as it can express this one, and the dimensions that it cannot.
    ///
    /// # Errors
    ///
    /// If a number is not one.
    pub fn of_report(&self) -> Result<(RowFilter, Vec<String>)> {
        let (from, to) = self.period()?;
        let slower_ns = number(self.slower.as_deref())?;
        let mut filter = RowFilter { from, to, slower_ns, ..RowFilter::default() };
        let mut left_out = Vec::new();
        for (key, values) in &self.values {
            let known: Option<Vec<&str>> = values.iter().map(Option::as_deref).collect();
            if !known.is_some_and(|values| apply(&mut filter, key, &values)) {
                left_out.push(key.clone());
            }
        }
        Ok((filter, left_out))
    }
}

/// Adds a condition to the filter of a report; false if it has none of this kind.
fn apply(filter: &mut RowFilter, key: &str, values: &[&str]) -> bool {
    /// All values parsed, or none.
    fn all<T: std::str::FromStr>(values: impl Iterator<Item = String>) -> Option<Vec<T>> {
        values.map(|value| value.parse().ok()).collect()
    }
    // A wildcard in a name would match other names.
    if matches!(key, "share" | "user" | "path" | "extension")
        && values.iter().any(|value| value.contains(['*', '?']))
    {
        return false;
    }
    let plain = || values.iter().map(|value| (*value).to_owned());
    let set =
        match key {
            "client" => all(plain()).map(|values| filter.clients = values),
            "server" => all(plain()).map(|values| filter.servers = values),
            "share" => all(plain()).map(|values| filter.shares = values),
            "user" => all(plain()).map(|values| filter.users = values),
            "command" => all(plain()).map(|values| filter.commands = values),
            // From the root of the share, even if the path has one component.
            "path" if !has(filter) => all(values.iter().map(|value| format!("/{value}")))
                .map(|values| filter.paths = values),
            "extension" if !has(filter) => all(values.iter().map(|value| format!("*.{value}")))
                .map(|values| filter.paths = values),
            _ => None,
        };
    set.is_some()
}

/// Whether it has paths: those of two dimensions would be alternatives.
fn has(filter: &RowFilter) -> bool {
    !filter.paths.is_empty()
}

fn condition(sql: &str, form: Form, values: &[Option<String>]) -> Result<String> {
    let known = values.iter().flatten().map(|value| match form {
        Form::Text | Form::Slice => Ok(literal(value)),
        Form::Number | Form::Period(_) => number(Some(value)).map(|n| n.unwrap_or(0).to_string()),
    });
    let known = known.collect::<Result<Vec<_>>>()?;
    let is_one_of = (!known.is_empty()).then(|| format!("{sql} IN ({})", known.join(", ")));
    let is_unknown = values.contains(&None).then(|| format!("({sql}) IS NULL"));
    Ok(match (is_one_of, is_unknown) {
        (Some(one), Some(unknown)) => format!("({one} OR {unknown})"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "true".to_owned(),
    })
}

/// Text as SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn number(text: Option<&str>) -> Result<Option<i64>> {
    let parse = |text: &str| {
        text.parse().map_err(|_| Error::request(format!("{text}: not an integer of 64 bits")))
    };
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::{INTERRUPTS, OPERATIONS};

    fn filter(json: &str) -> Filter {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn values_cannot_leave_their_literal() {
        let sql = filter(r#"{"in":{"user":["o'x' OR 1=1 --", null]}}"#);
        assert_eq!(
            sql.sql(&OPERATIONS, 0).unwrap(),
            "waits IS NOT TRUE AND (lower(\"user\") IN ('o''x'' OR 1=1 --') OR (lower(\"user\")) IS NULL)"
        );
        assert!(filter(r#"{"in":{"operation":["1 OR 1"]}}"#).sql(&OPERATIONS, 0).is_err());
        assert!(filter(r#"{"from":"1;"}"#).sql(&OPERATIONS, 0).is_err());
        assert!(filter(r#"{"in":{"nothing":["1"]}}"#).sql(&OPERATIONS, 0).is_err());
        assert!(serde_json::from_str::<Filter>(r#"{"where":"1"}"#).is_err());
    }

    #[test]
    fn conditions_of_another_subject_do_not_apply() {
        let both = filter(r#"{"in":{"user":["a"],"cpu":["3"]},"from":"5","slower":"7"}"#);
        assert_eq!(both.sql(&INTERRUPTS, 0).unwrap(), "true AND cpu IN (3) AND start >= 5");
    }

    #[test]
    fn a_report_applies_what_it_can() {
        let (rows, left_out) = filter(
            r#"{"in":{"client":["10.0.0.1"],"extension":["docx"],"path":["a"],"status":["X"],"user":[null]}}"#,
        )
        .of_report()
        .unwrap();
        assert_eq!(left_out, ["path", "status", "user"]);
        assert_eq!(rows.words(false, 0), "client 10.0.0.1; path *.docx");
    }
}
