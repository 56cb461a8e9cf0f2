//! Eight machines that share a run together equal one machine: the same users, the same scenarios at
//! the same times on the same files, and so the same mix. On a server in memory, on a virtual clock.

// A test may panic.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "support/engine.rs"]
mod engine;
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array as _, AsArray as _};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use engine::Asked;
use fake::Fake;
use smbscope_load::run::users::{Credentials, Shard};
use smbscope_tables::run::DONE;
use tokio::time::Instant;

const USERS: u64 = 100;
const SHARDS: u64 = 8;

/// Three scenarios of different frequency, at times that depend only on the seed.
const WORKLOAD: &str = r#"
description = "Files looked at, edited and asked for"

[pacing]
spacing = "exponential"

[files.small]
class = "static"
folders = ["Small", "Other"]
name = "{word}-{n}.bin"
bytes = ["4 KiB"]
repeat = 30

[scenarios.Look]
description = "a file read"
runs_per_hour = 900
files = { file = "small" }
steps = [
  { action = "open", create = "{file}", handle = "file", access = "read" },
  { action = "read", read = "file", file = "file" },
  { action = "close", close = "file" },
]

[scenarios.Edit]
description = "a file written"
runs_per_hour = 400
files = { file = "small" }
steps = [
  { action = "open", create = "{file}", handle = "file", access = "read_write" },
  { action = "write", write = "file", file = "file" },
  { action = "close", close = "file" },
]

[scenarios.Ask]
description = "a file's size asked for"
runs_per_hour = 100
files = { file = "small" }
steps = [
  { action = "open", create = "{file}", handle = "file", access = "read" },
  { action = "ask", query_info = "file", class = "FileStandardInformation" },
  { action = "close", close = "file" },
]
"#;

/// The work done: executions by user, scenario and time from the begin, and operations by command and file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    executions: BTreeMap<(u64, String, i64), u64>,
    operations: BTreeMap<(String, Option<String>), u64>,
}

async fn run(shard: Shard, done: &mut Done) {
    let start = Instant::now();
    let host = Arc::new(Fake::new(Duration::from_millis(2), 4096)).host();
    let start_ns = host.clock.ns_at(start);
    let planner = smbscope_testing::run::planner(WORKLOAD, 11);
    let credentials = Credentials::pattern("user{:05}", "secret").unwrap();
    let asked = Asked::new(host, planner, credentials, USERS, Duration::from_secs(60));
    let settings =
        Asked { shard, ramp: Duration::from_secs(1), timeout: Duration::from_secs(5), ..asked };
    let shown = engine::run(settings, |_| ()).await;
    assert_eq!(shown.unexpected, []);
    for row in shown.scenarios {
        // The end of the step may precede an execution that is due at the same time.
        if row.outcome == DONE {
            let key = (row.user_number, row.scenario, row.scheduled_at - start_ns);
            *done.executions.entry(key).or_default() += 1;
        }
    }
    for batch in shown.operations {
        let column = |name: &str| cast(&batch[name], &DataType::Utf8).unwrap();
        let (commands, paths) = (column("command"), column("path"));
        let (commands, paths) = (commands.as_string::<i32>(), paths.as_string::<i32>());
        for row in 0..batch.num_rows() {
            let path = paths.is_valid(row).then(|| paths.value(row).to_owned());
            let key = (commands.value(row).to_owned(), path);
            *done.operations.entry(key).or_default() += 1;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn eight_shards_equal_one_run() {
    let (mut one, mut eight) = (Done::default(), Done::default());
    run(Shard::ALL, &mut one).await;
    for index in 1..=SHARDS {
        let before = eight.executions.len();
        run(Shard { index, count: SHARDS }, &mut eight).await;
        assert!(eight.executions.len() > before, "shard {index} did nothing");
    }
    // About 100 users x 1,400 an hour x 62 s.
    assert!(one.executions.len() > 1_500, "{}", one.executions.len());
    assert!(one.executions.values().all(|count| *count == 1));
    let only = |left: &Done, right: &Done| -> Vec<_> {
        let differs = |key: &&(u64, String, i64)| !right.executions.contains_key(*key);
        left.executions.keys().filter(differs).take(5).cloned().collect()
    };
    assert_eq!(only(&one, &eight), [], "one run alone");
    assert_eq!(only(&eight, &one), [], "eight alone");
    assert_eq!(one.operations, eight.operations);
    // The mix is the workload's: 900 to 400 to 100.
    let share = |name: &str| {
        let count = one.executions.keys().filter(|key| key.1 == name).count();
        count as f64 / one.executions.len() as f64
    };
    for (name, expected) in [("Look", 9.0 / 14.0), ("Edit", 4.0 / 14.0), ("Ask", 1.0 / 14.0)] {
        assert!((share(name) - expected).abs() < 0.05, "{name}: {}", share(name));
    }
}
