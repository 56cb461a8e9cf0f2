//! Single operations: the list behind a cell of a table, and one operation with its neighbours.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use smbscope_analysis::summary::filter as wireshark_filter;

use crate::data::{About, Loaded};
use crate::error::{Error, Result};
use crate::filter::{Filter, literal};
use crate::subject::{OPERATIONS, Subject};
use crate::value::Rows;

/// Most rows of one part.
const LIMIT_MAX: usize = 500;
/// Neighbours of an operation on its connection.
const NEIGHBOURS_MAX: usize = 200;
/// Columns of a list of operations.
const COLUMNS: [&str; 24] = [
    "recording",
    "operation",
    "request_start",
    "client",
    "\"user\"",
    "share",
    "command",
    "detail",
    "status_name",
    "path",
    "offset_bytes",
    "transferred_bytes",
    "elapsed_ns",
    "server_ns",
    "request_transfer_ns",
    "response_transfer_ns",
    "outstanding",
    "capture_file",
    "request_frame",
    "response_frame",
    "protocol",
    "client_port",
    "message_id",
    "connection",
];
/// Columns of a list of interrupts.
const INTERRUPT_COLUMNS: [&str; 10] = [
    "recording",
    "start",
    "cpu",
    "kind",
    "name",
    "\"function\"",
    "device",
    "exclusive_ns",
    "duration_ns",
    "delay_ns",
];

/// The request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    pub table: Option<String>,
    pub filter: Filter,
    /// A column of the list; the longest time first without.
    pub sort: Option<String>,
    pub ascending: bool,
    pub offset: usize,
    pub limit: usize,
}

/// Which operation is asked about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct One {
    pub recording: String,
    pub operation: u64,
}

/// The statement that lists rows, without its limit.
fn statement(request: &Request, about: &About) -> Result<(String, &'static Subject)> {
    let subject = Subject::named(request.table.as_deref())
        .ok_or_else(|| Error::request("there is no such table"))?;
    let columns: &[&str] =
        if subject.table == OPERATIONS.table { &COLUMNS } else { &INTERRUPT_COLUMNS };
    let longest = subject.values.first().map_or("1", |value| value.key);
    let sort = match &request.sort {
        Some(sort) => *columns
            .iter()
            .find(|column| column.trim_matches('"') == sort)
            .ok_or_else(|| Error::request(format!("there is no column {sort}")))?,
        None => longest,
    };
    let order = if request.ascending { "ASC" } else { "DESC" };
    let last =
        if subject.table == OPERATIONS.table { "recording, operation" } else { "start, cpu" };
    let condition = request.filter.sql(subject, about.clock.offset_s())?;
    let sql = format!(
        "SELECT {}\nFROM {}\nWHERE {condition}\nORDER BY {sort} {order} NULLS LAST, {last}",
        columns.join(", "),
        subject.table,
    );
    Ok((sql, subject))
}

/// A part of the list, and the number of all rows.
///
/// # Errors
///
/// Those of the query, and if the request is wrong.
pub fn list(request: &Request, loaded: &Loaded, about: &About) -> Result<Value> {
    let (sql, subject) = statement(request, about)?;
    let condition = request.filter.sql(subject, about.clock.offset_s())?;
    let count = format!("SELECT count(*) FROM {} WHERE {condition}", subject.table);
    let count =
        Rows::new(&loaded.query(&count)?)?.iter().next().and_then(|row| row.into_iter().next());
    let limit = request.limit.min(LIMIT_MAX);
    let answer = loaded.query(&format!("{sql}\nLIMIT {limit} OFFSET {}", request.offset))?;
    let columns: &[&str] =
        if subject.table == OPERATIONS.table { &COLUMNS } else { &INTERRUPT_COLUMNS };
    let rows: Vec<_> = Rows::new(&answer)?.iter().map(|row| object(columns, row)).collect();
    Ok(json!({ "sql": sql, "count": count, "offset": request.offset, "rows": rows }))
}

/// One operation with its slices, and what was on its connection, on its open and of its client meanwhile.
///
/// # Errors
///
/// Those of the queries, and if there is no such operation.
pub fn one(request: &One, loaded: &Loaded) -> Result<Value> {
    let key = format!(
        "recording = {} AND operation = {}",
        literal(&request.recording),
        request.operation
    );
    let all = |sql: &str| -> Result<Vec<Vec<Value>>> {
        Ok(Rows::new(&loaded.query(sql)?)?.iter().collect())
    };
    let columns: Vec<&str> = COLUMNS
        .into_iter()
        .chain(["request_end", "response_start", "response_end", "handle", "session_id"])
        .collect();
    let sql = format!("SELECT {} FROM operations WHERE {key}", columns.join(", "));
    let found = all(&sql)?.into_iter().next();
    let found = found.ok_or_else(|| Error::request("there is no such operation"))?;
    let operation = object(&columns, found);
    let number = |name: &str| {
        operation.get(name).and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok())
    };
    let slices = all(&format!(
        "SELECT kind, CAST(start AS VARCHAR) AS began, duration_ns FROM slices WHERE {key} ORDER BY start LIMIT {NEIGHBOURS_MAX}"
    ))?;
    let (start, end) = (number("request_start"), number("response_end"));
    let mut neighbours = Vec::new();
    if let (Some(start), Some(connection)) =
        (start, operation.get("connection").and_then(Value::as_u64))
    {
        let end = end.unwrap_or(start);
        let around = end.saturating_sub(start).max(1_000_000);
        neighbours = near(
            &format!(
                "recording = {} AND connection = {connection} AND request_start < {} AND \
                 coalesce(response_end, request_start) >= {}",
                literal(&request.recording),
                end.saturating_add(around),
                start.saturating_sub(around),
            ),
            loaded,
        )?;
    }
    let mut opened = Vec::new();
    if let Some(handle) = operation.get("handle").and_then(Value::as_u64) {
        let of = format!("recording = {} AND handle = {handle}", literal(&request.recording));
        opened = near(&of, loaded)?;
    }
    Ok(
        json!({ "operation": operation, "slices": slices, "connection": neighbours, "open": opened }),
    )
}

/// Operations that meet a condition, in the order of time.
fn near(condition: &str, loaded: &Loaded) -> Result<Vec<Value>> {
    const NAMES: [&str; 8] = [
        "operation",
        "command",
        "path",
        "status_name",
        "request_start",
        "response_end",
        "elapsed_ns",
        "recording",
    ];
    let sql = format!(
        "SELECT {} FROM operations WHERE {condition} ORDER BY request_start, operation LIMIT {NEIGHBOURS_MAX}",
        NAMES.join(", ")
    );
    Ok(Rows::new(&loaded.query(&sql)?)?.iter().map(|row| object(&NAMES, row)).collect())
}

/// A row as an object, with a filter for Wireshark where that can be made. Times are strings: a browser cannot hold
/// nanoseconds since 1970.
fn object(columns: &[&str], row: Vec<Value>) -> Value {
    let mut object: Map<String, Value> = columns
        .iter()
        .zip(row)
        .map(|(name, value)| {
            let is_large = matches!(
                name.trim_matches('"'),
                "start"
                    | "request_start"
                    | "request_end"
                    | "response_start"
                    | "response_end"
                    | "message_id"
                    | "session_id"
            );
            let value =
                if is_large && value.is_number() { Value::from(value.to_string()) } else { value };
            (name.trim_matches('"').to_owned(), value)
        })
        .collect();
    let number = |name: &str| object.get(name).and_then(Value::as_u64);
    let message = object.get("message_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    let filter = wireshark_filter(
        number("protocol").and_then(|it| u8::try_from(it).ok()),
        number("client_port").and_then(|it| u16::try_from(it).ok()),
        message,
        [number("request_frame"), number("response_frame")],
    );
    // Rows from inside a server have messages, but no packets to show.
    let has_frames = number("request_frame").or(number("response_frame")).is_some();
    if let Some(filter) = filter.filter(|_| has_frames) {
        object.insert("wireshark".to_owned(), Value::from(filter));
    }
    Value::Object(object)
}
