//! What a table of the page counts: operations, or interrupts and deferred work of a CPU trace; by which
//! dimensions rows can be grouped and filtered, and which values are summed up.
//!
//! Everything that reaches SQL from here is a constant; what comes from outside only chooses among them.

use smbscope_tables::slice::Kind;

/// Rows of one table.
#[derive(Debug)]
pub struct Subject {
    /// Its name in requests: that of the table.
    pub table: &'static str,
    /// A row in words, in the plural.
    pub title: &'static str,
    /// Which rows count.
    pub counted: &'static str,
    /// When a row began, ns since 1970.
    pub time: &'static str,
    pub dimensions: &'static [Dimension],
    pub values: &'static [Value],
}

/// What rows are grouped and filtered by.
#[derive(Debug)]
pub struct Dimension {
    pub key: &'static str,
    pub title: &'static str,
    pub form: Form,
    sql: &'static str,
}

/// How the values of a dimension are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Number,
    /// The beginning of a period of this many ns, in ns since 1970.
    Period(i64),
    /// The parts of an operation's time: a row counts once for each part that it has.
    Slice,
}

/// A column of numbers.
#[derive(Debug)]
pub struct Value {
    pub key: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    sql: &'static str,
}

/// A part of an operation's time: its name, and its SQL.
pub type Part = (&'static str, String);

const HOUR: i64 = 3_600_000_000_000;
const MINUTE: i64 = 60_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// A dimension of text, number or period, in one line.
macro_rules! dimensions {
    ($($key:literal $title:literal $form:expr => $sql:expr;)*) => {
        &[$(Dimension { key: $key, title: $title, form: $form, sql: $sql },)*]
    };
}

macro_rules! values {
    ($($key:literal $title:literal $unit:literal;)*) => {
        &[$(Value { key: $key, title: $title, unit: $unit, sql: $key },)*]
    };
}

/// Access masks of MS-SMB2 section 2.2.13.1, with the rights that decide first.
const ACCESS: &str = "CASE WHEN desired_access IS NULL THEN NULL \
     WHEN desired_access & 1342177286 <> 0 AND desired_access & 2415919105 <> 0 THEN 'read and write' \
     WHEN desired_access & 1342177286 <> 0 THEN 'write' \
     WHEN desired_access & 65536 <> 0 THEN 'delete' \
     WHEN desired_access & 33554432 <> 0 THEN 'whatever is granted' \
     WHEN desired_access & 2147483649 <> 0 THEN 'read' \
     WHEN desired_access & 536870944 <> 0 THEN 'execute' \
     ELSE 'attributes' END";

const PROTECTION: &str =
    "CASE WHEN encrypted THEN 'encrypted' WHEN signed THEN 'signed' ELSE 'none' END";

/// SMB operations, without those that wait by design: their time is not latency.
pub static OPERATIONS: Subject = Subject {
    table: "operations",
    title: "operations",
    counted: "waits IS NOT TRUE",
    time: "request_start",
    dimensions: dimensions! {
        "share" "Share" Form::Text => "lower(share)";
        "command" "Request" Form::Text => "command";
        "detail" "Request in detail" Form::Text => "detail";
        "client" "Client" Form::Text => "client";
        "user" "User" Form::Text => "lower(\"user\")";
        "extension" "File type" Form::Text => "extension";
        "status" "Status" Form::Text => "status_name";
        "access" "Desired access" Form::Text => ACCESS;
        "connection" "Connection" Form::Text => "concat(client, ':', client_port, ' - ', server, ':', server_port)";
        "server" "Server" Form::Text => "server";
        "dialect" "Dialect" Form::Text => "dialect";
        "protection" "Protection" Form::Text => PROTECTION;
        "slice" "Part of the time" Form::Slice => "slice";
        "path" "File" Form::Text => "path";
        "hour" "Hour" Form::Period(HOUR) => "request_start";
        "minute" "Minute" Form::Period(MINUTE) => "request_start";
        "second" "Second" Form::Period(SECOND) => "request_start";
        "recording" "Recording" Form::Text => "recording";
        "operation" "Operation" Form::Number => "operation";
    },
    values: values! {
        "elapsed_ns" "Time" "ns";
        "server_ns" "Server time" "ns";
        "turnaround_ns" "Turnaround" "ns";
        "busy_ns" "Share of the waiting" "ns";
        "transferred_bytes" "Bytes" "bytes";
        "requested_bytes" "Requested bytes" "bytes";
        "outstanding" "In flight before it" "count";
    },
};

/// Interrupts and deferred work.
pub static INTERRUPTS: Subject = Subject {
    table: "interrupts",
    title: "interrupts and deferred work",
    counted: "true",
    time: "start",
    dimensions: dimensions! {
        "cpu" "CPU" Form::Number => "cpu";
        "kind" "Kind" Form::Text => "kind";
        "module" "Module" Form::Text => "name";
        "function" "Function" Form::Text => "\"function\"";
        "device" "Device" Form::Text => "device";
        "queue" "Queue" Form::Number => "queue";
        "thread" "Interrupted thread" Form::Number => "thread";
        "second" "Second" Form::Period(SECOND) => "start";
        "recording" "Recording" Form::Text => "recording";
    },
    values: values! {
        "exclusive_ns" "Time of its own" "ns";
        "duration_ns" "Time" "ns";
        "delay_ns" "Delay" "ns";
        "work" "Packets" "count";
    },
};

/// What a group of rows is summed up by.
pub const STATISTICS: [(&str, &str); 8] = [
    ("n", "count(*)"),
    ("known", "count(value)"),
    ("sum", "sum(value)"),
    ("mean", "avg(value)"),
    ("p50", "percentile(value, 0.5)"),
    ("p95", "percentile(value, 0.95)"),
    ("p99", "percentile(value, 0.99)"),
    ("max", "max(value)"),
];

impl Subject {
    pub const ALL: [&'static Subject; 2] = [&OPERATIONS, &INTERRUPTS];

    /// The subject of a table; operations without a name.
    pub fn named(table: Option<&str>) -> Option<&'static Subject> {
        let table = table.unwrap_or(OPERATIONS.table);
        Subject::ALL.into_iter().find(|subject| subject.table == table)
    }

    pub fn dimension(&self, key: &str) -> Option<&'static Dimension> {
        self.dimensions.iter().find(|one| one.key == key)
    }

    /// A value by its key; the first one without.
    pub fn value(&self, key: Option<&str>) -> Option<&'static Value> {
        match key {
            Some(key) => self.values.iter().find(|one| one.key == key),
            None => self.values.first(),
        }
    }
}

impl Dimension {
    /// Its values as SQL. Periods begin where those of a clock do that is `offset_s` ahead of UTC.
    pub fn sql(&self, offset_s: i32) -> String {
        let Form::Period(length) = self.form else { return self.sql.to_owned() };
        let (column, ahead) = (self.sql, i64::from(offset_s) * SECOND % length);
        match ahead {
            0 => format!("{column} - {column} % {length}"),
            _ => format!("{column} - ({column} + {ahead}) % {length}"),
        }
    }
}

impl Value {
    /// The column as SQL: a signed integer, which `percentile` takes.
    pub fn sql(&self) -> String {
        match self.unit {
            "ns" => self.sql.to_owned(),
            _ => format!("CAST({} AS BIGINT)", self.sql),
        }
    }
}

/// The parts of an operation's time where the rows have the slices `kinds` of a server: they add up to the elapsed time.
pub fn parts(kinds: &[Kind]) -> Vec<Part> {
    let request = ("Request transfer", "request_transfer_ns".to_owned());
    let response = ("Response transfer", "response_transfer_ns".to_owned());
    let known: Vec<_> = kinds.iter().filter(|kind| kind.is_part()).collect();
    let mut parts = vec![request];
    if known.is_empty() {
        parts.push(("Server", "server_ns".to_owned()));
        parts.push(("Network", "turnaround_ns - server_ns".to_owned()));
        let unsplit = "CASE WHEN server_ns IS NULL THEN turnaround_ns END";
        parts.push(("Turnaround, not divided", unsplit.to_owned()));
    } else {
        parts.extend(known.iter().map(|kind| (kind.title(), kind.column_name().to_owned())));
        let sum: Vec<_> =
            known.iter().map(|kind| format!("coalesce({}, 0)", kind.column_name())).collect();
        parts.push(("No slice", format!("turnaround_ns - ({})", sum.join(" + "))));
    }
    parts.push(response);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_begin_with_the_hours_of_the_clock() {
        let hour = OPERATIONS.dimension("hour").unwrap();
        assert_eq!(hour.sql(7_200), "request_start - request_start % 3600000000000");
        assert_eq!(
            hour.sql(19_800),
            "request_start - (request_start + 1800000000000) % 3600000000000"
        );
    }

    #[test]
    fn keys_are_unique() {
        for subject in Subject::ALL {
            let mut keys: Vec<_> = subject.dimensions.iter().map(|one| one.key).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), subject.dimensions.len());
        }
    }
}
