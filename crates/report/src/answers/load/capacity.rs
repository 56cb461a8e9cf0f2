//! The steps of a load run as text: FSCT's table with the server's use and response times.
//!
//! Owns the layout of lines that are printed while the run continues, so that the widths of columns are
//! fixed. The numbers are those of the run's report (`analysis::summary`).

use smbscope_analysis::summary::{Failure, ScenarioRow, StepRow};

use crate::answers::load::bottleneck::bottleneck;
use crate::render::table::{Column, lines};
use crate::value::format;

/// Kinds of failures that are listed.
const FAILURES_SHOWN: usize = 10;

/// Titles of the columns of steps, and how wide they are.
const COLUMNS: [(&str, usize); 13] = [
    ("Users", 7),
    ("Overload", 8),
    ("Scenarios/s", 11),
    ("Operations/s", 12),
    ("MB/s", 7),
    ("CPU", 5),
    ("Disk", 5),
    ("Errors", 7),
    ("Time", 9),
    ("p50", 9),
    ("p95", 9),
    ("p99", 9),
    ("max", 9),
];

/// The line of titles.
pub fn steps_header() -> String {
    line(COLUMNS.iter().map(|(title, _)| (*title).to_owned()))
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let padded = cells.zip(COLUMNS).map(|(cell, (_, width))| {
        let missing = width.saturating_sub(cell.chars().count());
        format!("{}{cell}", " ".repeat(missing))
    });
    padded.collect::<Vec<_>>().join("  ")
}

/// A step's line; `limits` are limits on response times that it did not keep, in words.
pub fn step_line(row: &StepRow, limits: &[String]) -> String {
    let unknown = || "-".to_owned();
    let share =
        |share: Option<f64>| share.map_or_else(unknown, |share| format!("{:.0} %", share * 100.0));
    let time = |ns: Option<i64>| ns.map_or_else(unknown, format::duration);
    let response = &row.response;
    let cells = [
        row.users.to_string(),
        format::share(row.overload_share),
        format::number(row.throughput),
        row.operations_per_second.map_or_else(unknown, format::number),
        row.bytes_per_second.map_or_else(unknown, |bytes| format::number(bytes / 1e6)),
        share(row.server_cpu_share),
        share(row.server_disk_share),
        format::count(row.failed),
        format::duration(row.duration_ns),
        time(response.p50_ns),
        time(response.p95_ns),
        time(response.p99_ns),
        time(response.max_ns),
    ];
    let mut notes = Vec::new();
    if row.server_gone {
        notes.push("the server stopped answering".to_owned());
    }
    if row.overloaded {
        notes.push("overloaded".to_owned());
    }
    notes.extend(limits.iter().cloned());
    if let Some(bottleneck) = bottleneck(row) {
        notes.push(format!("bottleneck: {bottleneck}"));
    }
    if row.ended_early && !row.server_gone {
        notes.push("ended early".to_owned());
    }
    let text = line(cells.into_iter());
    if notes.is_empty() { text } else { format!("{text}  {}", notes.join(", ")) }
}

/// Response times of scenarios, from their scheduled time.
pub fn scenario_lines(rows: &[ScenarioRow], style: (&str, &str)) -> String {
    let columns = Column::numbers_of("Scenario", &["n", "p50", "p95", "p99", "max"]);
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format::duration);
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let of = &row.response;
            let times = [of.p50_ns, of.p95_ns, of.p99_ns, of.max_ns].map(time);
            [vec![row.scenario.clone(), format::count(of.n)], times.to_vec()].concat()
        })
        .collect();
    lines(&columns, &cells, style, None)
}

/// Scenarios that failed, by status, with what that usually means; nothing if none failed.
pub fn failure_lines(failures: &[Failure], style: (&str, &str), width: Option<usize>) -> String {
    if failures.is_empty() {
        return String::new();
    }
    let mut columns =
        vec![Column::right("Failed"), Column::left("Scenario"), Column::left("Status")];
    columns.push(Column::left("Meaning"));
    let cells: Vec<Vec<String>> = failures
        .iter()
        .take(FAILURES_SHOWN)
        .map(|row| {
            let meaning = failure_meaning(&row.status).unwrap_or("see the server's log").to_owned();
            vec![format::count(row.count), row.scenario.clone(), row.status.clone(), meaning]
        })
        .collect();
    let mut text = lines(&columns, &cells, style, width);
    if failures.len() > FAILURES_SHOWN {
        let more = failures.len() - FAILURES_SHOWN;
        text += &format!("and {more} more kinds of failures (smbscope report lists them)\n");
    }
    text
}

/// What a status or connection problem of a failed scenario usually means, and what to do.
pub fn failure_meaning(status: &str) -> Option<&'static str> {
    Some(match status {
        "STATUS_OBJECT_NAME_NOT_FOUND" | "STATUS_OBJECT_PATH_NOT_FOUND" | "STATUS_NO_SUCH_FILE" => {
            "a file of the file set is missing: run smbscope load prepare with the options of the run"
        }
        "STATUS_OBJECT_NAME_COLLISION" => {
            "a file of an earlier run is in the way: run smbscope load prepare"
        }
        "STATUS_ACCESS_DENIED" => {
            "the user may not do this: check the share's and the folder's permissions"
        }
        "STATUS_LOGON_FAILURE" | "STATUS_WRONG_PASSWORD" | "STATUS_NO_SUCH_USER" => {
            "the server does not know the user or the password"
        }
        "STATUS_ACCOUNT_LOCKED_OUT" => "the account is locked after wrong passwords",
        "STATUS_DISK_FULL" => "the share is full",
        "STATUS_SHARING_VIOLATION" => {
            "somebody else has the file open: run one load at a time on these files"
        }
        "STATUS_FILE_LOCK_CONFLICT" | "STATUS_LOCK_NOT_GRANTED" => {
            "somebody else has locked the bytes"
        }
        "STATUS_INSUFFICIENT_RESOURCES" | "STATUS_INSUFF_SERVER_RESOURCES" => {
            "the server has no memory, handles or credits left: see its limits"
        }
        "STATUS_TOO_MANY_OPENED_FILES" => {
            "the server's limit of open files is reached (Samba: max open files)"
        }
        "STATUS_REQUEST_NOT_ACCEPTED" => "the server's limit of sessions is reached",
        "STATUS_USER_SESSION_DELETED" | "STATUS_NETWORK_SESSION_EXPIRED" => {
            "the server ended the session"
        }
        "STATUS_NETWORK_NAME_DELETED" => "the server closed the share or the connection to it",
        "STATUS_NOT_SUPPORTED" | "STATUS_INVALID_INFO_CLASS" | "STATUS_INVALID_DEVICE_REQUEST" => {
            "the server does not know this request"
        }
        "STATUS_SUCCESS" => "the server did what the workload expects it to refuse",
        "STATUS_FILE_CLOSED" | "STATUS_INVALID_HANDLE" => {
            "the server does not know the open; with related compounds try --compounds off"
        }
        "STATUS_INVALID_PARAMETER" => {
            "the server does not accept the request; with related compounds try --compounds off"
        }
        "connection refused" => {
            "nothing listens on the server's port: it stopped, or a firewall rejects it"
        }
        "connection reset" | "connection closed" => "the server ended the connection: see its log",
        "unreachable" => "no route to the server",
        "timeout" => "no reply within --timeout",
        "short transfer" => "the server read or wrote fewer bytes than requested",
        "protocol error" => "the reply breaks the protocol or its signature is wrong",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::summary::{Bottleneck, Distribution};

    use super::*;

    #[test]
    fn lines_of_steps_are_aligned() {
        let response = Distribution {
            n: 9,
            p50_ns: Some(12_000_000),
            p95_ns: Some(4_510_000_000),
            p99_ns: Some(5_000_000_000),
            max_ns: Some(6_000_000_000),
            ..Distribution::default()
        };
        let carried = StepRow {
            users: 140,
            throughput: 12.9,
            operations_per_second: Some(512.4),
            bytes_per_second: Some(14_200_000.0),
            server_cpu_share: Some(0.61),
            duration_ns: 60_000_000_000,
            response,
            ..StepRow::default()
        };
        let too_many = StepRow {
            users: 160,
            overload_share: 0.123,
            overloaded: true,
            server_cpu_share: Some(0.99),
            bottleneck: Some(Bottleneck::Processors),
            ended_early: true,
            ..carried.clone()
        };
        let gone = StepRow { server_gone: true, ended_early: true, ..carried.clone() };
        let limits = ["p95 4.51 s, limit 2s".to_owned()];
        let text = [
            steps_header(),
            step_line(&carried, &limits),
            step_line(&too_many, &[]),
            step_line(&gone, &[]),
        ]
        .join("\n");
        let expected = "  Users  Overload  Scenarios/s  Operations/s     MB/s    CPU   Disk   Errors       Time        p50        p95        p99        max
    140       0 %        12.90           512    14.20   61 %      -        0     60.0 s    12.0 ms     4.51 s     5.00 s     6.00 s  p95 4.51 s, limit 2s
    160    12.3 %        12.90           512    14.20   99 %      -        0     60.0 s    12.0 ms     4.51 s     5.00 s     6.00 s  overloaded, bottleneck: server CPUs, ended early
    140       0 %        12.90           512    14.20   61 %      -        0     60.0 s    12.0 ms     4.51 s     5.00 s     6.00 s  the server stopped answering";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn failures_are_explained() {
        let failure = |status: &str, count| Failure {
            status: status.into(),
            scenario: "WordFileOpen".into(),
            count,
            ..Failure::default()
        };
        let text = failure_lines(
            &[failure("STATUS_OBJECT_NAME_NOT_FOUND", 4_900), failure("STATUS_STRANGE", 23)],
            ("", ""),
            None,
        );
        assert!(
            text.contains("4,900  WordFileOpen  STATUS_OBJECT_NAME_NOT_FOUND  a file"),
            "{text}"
        );
        assert!(text.contains("STATUS_STRANGE                see the server's log"), "{text}");
        assert_eq!(failure_lines(&[], ("", ""), None), "");
    }
}
