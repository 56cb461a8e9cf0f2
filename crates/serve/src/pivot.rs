//! The pivot: rows and columns by dimensions, a cell for each pair, totals of both, and the part of it that a
//! browser shows. One statement makes all of it, and that statement is what a reader copies.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::data::{About, Loaded};
use crate::error::{Error, Result};
use crate::filter::{Filter, literal};
use crate::subject::{Dimension, Form, STATISTICS, Subject};
use crate::value::Rows;

/// Most dimensions of rows.
const ROWS_MAX: usize = 4;
/// Most values of the dimension of columns that are shown, those with most rows first.
const COLUMNS_MAX: usize = 40;
/// Most groups of an answer: they are held in memory.
const GROUPS_MAX: usize = 100_000;
/// Most rows of one part.
const LIMIT_MAX: usize = 500;

/// The request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    pub table: Option<String>,
    pub filter: Filter,
    /// Dimensions of rows, the outermost first.
    pub rows: Vec<String>,
    /// The dimension of columns.
    pub columns: Option<String>,
    /// The value that is summed up.
    pub value: Option<String>,
    /// Statistics of it.
    pub show: Vec<String>,
    pub sort: Sort,
    pub offset: usize,
    pub limit: usize,
}

/// The order of rows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sort {
    /// A statistic; by name without one.
    pub by: Option<String>,
    /// The place of a column; 0 is the total.
    pub column: usize,
    pub ascending: bool,
}

/// A checked request, and its SQL.
pub struct Pivot {
    pub subject: &'static Subject,
    rows: Vec<&'static Dimension>,
    columns: Option<&'static Dimension>,
    show: Vec<(&'static str, &'static str)>,
    unit: &'static str,
    pub sql: String,
}

/// A cell for each row and column.
struct Grid {
    /// Values of the columns' dimension, with the rows behind them.
    columns: Vec<Value>,
    left_out: usize,
    rows: Vec<Row>,
    total: Vec<Value>,
}

struct Row {
    key: Vec<Value>,
    /// The total, then a cell for each column.
    cells: Vec<Option<Vec<Value>>>,
}

impl Pivot {
    /// Checks a request.
    ///
    /// # Errors
    ///
    /// If it names what there is not, or too much.
    pub fn new(request: &Request, loaded: &Loaded, about: &About) -> Result<Pivot> {
        let subject = Subject::named(request.table.as_deref())
            .ok_or_else(|| Error::request("there is no such table"))?;
        let dimension = |key: &String| {
            let found = subject.dimension(key);
            found.ok_or_else(|| Error::request(format!("there is no dimension {key}")))
        };
        let rows = request.rows.iter().map(dimension).collect::<Result<Vec<_>>>()?;
        let columns = request.columns.as_ref().map(dimension).transpose()?;
        let mut keys: Vec<_> = rows.iter().chain(&columns).map(|one| one.key).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() < count || rows.len() > ROWS_MAX {
            let message = format!("at most {ROWS_MAX} dimensions of rows, each dimension once");
            return Err(Error::request(message));
        }
        let value = subject
            .value(request.value.as_deref())
            .ok_or_else(|| Error::request("there is no such value"))?;
        let mut pivot = Pivot {
            subject,
            rows,
            columns,
            show: shown(request)?,
            unit: value.unit,
            sql: String::new(),
        };
        let has_slices = pivot.dimensions().any(|one| one.form == Form::Slice);
        let value = if has_slices {
            pivot.unit = "ns";
            "slice_ns".to_owned()
        } else {
            value.sql()
        };
        pivot.sql = pivot.statement(&value, has_slices, &request.filter, loaded, about)?;
        Ok(pivot)
    }

    fn dimensions(&self) -> impl Iterator<Item = &&'static Dimension> {
        self.rows.iter().chain(&self.columns)
    }

    fn statement(
        &self,
        value: &str,
        has_slices: bool,
        filter: &Filter,
        loaded: &Loaded,
        about: &About,
    ) -> Result<String> {
        let offset_s = about.clock.offset_s();
        let names: Vec<_> = self.dimensions().map(|one| format!("\"{}\"", one.key)).collect();
        let inner = self
            .dimensions()
            .map(|one| format!("{} AS \"{}\"", one.sql(offset_s), one.key))
            .chain([format!("{value} AS value")]);
        let inner = inner.collect::<Vec<_>>().join(",\n    ");
        let condition = filter.sql(self.subject, offset_s)?;
        let from = if has_slices { slices(loaded, filter) } else { self.subject.table.to_owned() };
        let known = if has_slices { "\n    AND slice_ns IS NOT NULL" } else { "" };
        let statistics = self.show.iter().map(|(name, sql)| format!("{sql} AS {name}"));
        // The markers say which groups are totals: a value may be null itself.
        let markers = names
            .iter()
            .map(|name| format!("grouping({name}) AS of_all_{}", name.trim_matches('"')));
        let columns: Vec<_> = names.iter().cloned().chain(markers).chain(statistics).collect();
        let grouped = match (self.rows.len(), &self.columns) {
            (0, None) => String::new(),
            (count, columns) => {
                let rows = names.get(..count).unwrap_or_default().join(", ");
                let all = names.join(", ");
                let column = names.last().filter(|_| columns.is_some());
                let mut sets = vec![format!("({all})")];
                if let Some(column) = column.filter(|_| count > 0) {
                    sets.push(format!("({rows})"));
                    sets.push(format!("({column})"));
                }
                sets.push("()".to_owned());
                format!("\nGROUP BY GROUPING SETS ({})", sets.join(", "))
            }
        };
        Ok(format!(
            "SELECT\n  {}\nFROM (\n  SELECT\n    {inner}\n  FROM {from}\n  WHERE {condition}{known}\n){grouped}",
            columns.join(",\n  "),
        ))
    }

    /// The requested part of the table.
    ///
    /// # Errors
    ///
    /// Those of the query, and if it has too many groups.
    pub fn answer(&self, request: &Request, loaded: &Loaded) -> Result<Value> {
        let mut grid = self.grid(loaded)?;
        let by = request.sort.by.as_ref().map(|by| {
            let place = self.show.iter().position(|(name, _)| name == by);
            place.ok_or_else(|| Error::request(format!("{by} is not shown")))
        });
        grid.sort(by.transpose()?, &request.sort);
        let limit = request.limit.min(LIMIT_MAX);
        let rows: Vec<_> = grid
            .rows
            .iter()
            .skip(request.offset)
            .take(limit)
            .map(|row| json!({ "key": row.key, "cells": row.cells }))
            .collect();
        Ok(json!({
            "sql": self.sql,
            "unit": self.unit,
            "show": self.show.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(|one| one.key).collect::<Vec<_>>(),
            "columns": self.columns.map(|one| one.key),
            "column_values": grid.columns,
            "columns_left_out": grid.left_out,
            "count": grid.rows.len(),
            "offset": request.offset,
            "total": grid.total,
            "body": rows,
        }))
    }

    fn grid(&self, loaded: &Loaded) -> Result<Grid> {
        let answer = loaded.query(&format!("{}\nLIMIT {}", self.sql, GROUPS_MAX + 1))?;
        let groups: usize = answer.iter().map(|batch| batch.num_rows()).sum();
        if groups > GROUPS_MAX {
            return Err(Error::request(format!(
                "more than {GROUPS_MAX} groups: choose fewer dimensions, or filter"
            )));
        }
        let dimensions = self.dimensions().count();
        let mut totals: HashMap<String, (Value, Vec<Value>)> = HashMap::new();
        let mut rows: HashMap<String, Row> = HashMap::new();
        let mut cells = Vec::new();
        let mut whole = None;
        for mut group in Rows::new(&answer)?.iter() {
            let statistics = group.split_off(2 * dimensions);
            let of_all = group.split_off(dimensions);
            let is_all = |place: usize| of_all.get(place).and_then(Value::as_i64) != Some(0);
            let of_all_rows = (0..self.rows.len()).all(is_all);
            let column = self.columns.map(|_| group.pop().unwrap_or_default());
            let of_all_columns = column.is_none() || is_all(dimensions - 1);
            match (of_all_rows, of_all_columns, column) {
                (true, true, _) => whole = Some(statistics),
                (true, false, Some(column)) => {
                    totals.insert(column.to_string(), (column, statistics));
                }
                (false, true, _) => row(&mut rows, group).cells[0] = Some(statistics),
                (false, false, Some(column)) => cells.push((group, column.to_string(), statistics)),
                (_, false, None) => {}
            }
        }
        let mut columns: Vec<_> = totals.into_iter().collect();
        columns.sort_by(|(_, one), (_, other)| {
            let by_size = number(&other.1, 0).total_cmp(&number(&one.1, 0));
            by_size.then_with(|| compare(&one.0, &other.0))
        });
        let left_out = columns.len().saturating_sub(COLUMNS_MAX);
        columns.truncate(COLUMNS_MAX);
        if self.columns.is_some_and(|one| matches!(one.form, Form::Period(_) | Form::Number)) {
            columns.sort_by(|(_, one), (_, other)| compare(&one.0, &other.0));
        }
        let places: HashMap<_, _> =
            columns.iter().enumerate().map(|(place, (key, _))| (key.as_str(), place + 1)).collect();
        for one in rows.values_mut() {
            one.cells.resize(columns.len() + 1, None);
        }
        for (key, column, statistics) in cells {
            if let Some(place) = places.get(column.as_str())
                && let Some(cell) = row(&mut rows, key).cells.get_mut(*place)
            {
                *cell = Some(statistics);
            }
        }
        let whole = Value::from(whole.unwrap_or_default());
        let of_columns = columns.iter().map(|(_, (_, statistics))| json!(statistics));
        let total = std::iter::once(whole).chain(of_columns).collect();
        let columns = columns.into_iter().map(|(_, (value, _))| value).collect();
        Ok(Grid { columns, left_out, rows: rows.into_values().collect(), total })
    }
}

impl Grid {
    fn sort(&mut self, by: Option<usize>, sort: &Sort) {
        let value = |row: &Row| {
            let cell = row.cells.get(sort.column).cloned().flatten();
            cell.zip(by).map_or(f64::NEG_INFINITY, |(cell, by)| number(&cell, by))
        };
        self.rows.sort_by(|one, other| {
            let keys = || {
                let mut pairs = one.key.iter().zip(&other.key);
                pairs.find_map(|(a, b)| Some(compare(a, b)).filter(|order| order.is_ne()))
            };
            let order = match by {
                Some(_) => value(one).total_cmp(&value(other)),
                None => keys().unwrap_or(Ordering::Equal),
            };
            let order = if sort.ascending { order } else { order.reverse() };
            order.then_with(|| keys().unwrap_or(Ordering::Equal))
        });
    }
}

/// The row of a key.
fn row(rows: &mut HashMap<String, Row>, key: Vec<Value>) -> &mut Row {
    let name = Value::from(key.clone()).to_string();
    rows.entry(name).or_insert_with(|| Row { key, cells: vec![None] })
}

/// The statistics to show: `n` is always there, because columns are ranked by it.
fn shown(request: &Request) -> Result<Vec<(&'static str, &'static str)>> {
    let mut show = vec![STATISTICS[0]];
    for name in request.show.iter().filter(|name| *name != STATISTICS[0].0) {
        let found = STATISTICS.into_iter().find(|(known, _)| known == name);
        let found = found.ok_or_else(|| Error::request(format!("there is no statistic {name}")))?;
        if !show.contains(&found) {
            show.push(found);
        }
    }
    Ok(show)
}

/// Operations, once for each part of their time that the filter allows.
fn slices(loaded: &Loaded, filter: &Filter) -> String {
    let wanted = |name: &str| match filter.slices() {
        Some(values) => values.iter().flatten().any(|value| value == name),
        None => true,
    };
    let parts: Vec<_> = loaded.parts.iter().filter(|(name, _)| wanted(name)).collect();
    let names = parts.iter().map(|(name, _)| format!("({})", literal(name)));
    let names = match parts.len() {
        0 => "(NULL)".to_owned(),
        _ => names.collect::<Vec<_>>().join(", "),
    };
    let cases = parts.iter().map(|(name, sql)| format!("WHEN {} THEN {sql}", literal(name)));
    let value = match parts.len() {
        0 => "CAST(NULL AS BIGINT)".to_owned(),
        _ => format!("CASE slice {} END", cases.collect::<Vec<_>>().join(" ")),
    };
    format!(
        "(SELECT *, {value} AS slice_ns FROM operations CROSS JOIN (VALUES {names}) AS parts (slice))"
    )
}

fn number(cell: &[Value], place: usize) -> f64 {
    cell.get(place).and_then(Value::as_f64).unwrap_or(f64::NEG_INFINITY)
}

/// Numbers by size, text without regard to case, what is not known last.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Number(one), Value::Number(other)) => {
            one.as_i64().cmp(&other.as_i64()).then_with(|| {
                one.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default())
            })
        }
        (one, other) => one.to_string().to_lowercase().cmp(&other.to_string().to_lowercase()),
    }
}
