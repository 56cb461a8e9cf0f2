//! Metrics on a real Prometheus: every query of the dashboard returns data, every rule is valid.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use serde_json::Value;
use smbscope_report::export::prometheus::{Metrics, Recorder};
use smbscope_serve::http::{Listener, Request, Response};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

const PATIENCE: Duration = Duration::from_secs(60);

fn docs(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Reads, failed opens and breaks on two shares, with slices.
fn rows() -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for number in 0..60_i64 {
        let mut row = Operation::default();
        row.set_protocol(2);
        let commands = [8, 9, 5, 18];
        row.set_command(code::command(2, commands[number as usize % 4]));
        row.set_share(builder.names.share.intern([r"\\s\docs", r"\\s\home"][number as usize % 2]));
        row.set_status(if number % 4 == 2 { 0xc000_0022 } else { 0 });
        row.set_turnaround_ns(number * 700_000);
        row.set_elapsed_ns(number * 800_000);
        row.set_queue_ns(number * 10_000);
        row.set_lock_wait_ns(number * 20_000);
        row.set_transferred_bytes(4_096);
        row.set_request_wire_bytes(120);
        row.set_response_wire_bytes(4_200);
        row.set_signed(true);
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

/// Answers a scrape with more operations each time.
fn endpoint() -> SocketAddr {
    let (metrics, rows) = (Mutex::new(Metrics::default()), rows());
    let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.address();
    let answer = move |_: &Request| {
        let mut metrics = metrics.lock().unwrap();
        metrics.operations(&rows).unwrap();
        let recorder = Recorder { packets: Some((9, 0)), ..Recorder::default() };
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        Response::new(200, kind, metrics.text(Some(&recorder)))
    };
    listener.start(Arc::new(answer)).unwrap();
    address
}

/// A Prometheus that is ended with the test.
struct Prometheus(Child, u16);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    fn start(folder: &Path, target: SocketAddr) -> Option<Prometheus> {
        let program = program("prometheus")?;
        let config = format!(
            "scrape_configs:\n- job_name: smbscope\n  scrape_interval: 1s\n  static_configs: [{{ targets: ['{target}'] }}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Prometheus(child, port))
    }

    /// The answer to a query; none while it begins.
    fn query(&self, query: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.1)).ok()?;
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let request = format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    fn series(&self, query: &str) -> usize {
        let answer = self.query(query).unwrap_or_default();
        answer["data"]["result"].as_array().map_or(0, Vec::len)
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
    if found.is_none() {
        smbscope_testing::skip!("{name} is not in PATH");
    }
    found
}

#[test]
fn every_panel_shows_data() {
    let folder = tempfile::tempdir().unwrap();
    let Some(prometheus) = Prometheus::start(folder.path(), endpoint()) else { return };
    let begin = Instant::now();
    let wait_for = |query: &str| {
        while prometheus.series(query) == 0 {
            assert!(begin.elapsed() < PATIENCE, "no series: {query}");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    wait_for("rate(smbscope_requests_total[30s]) > 0");
    let board: Value = serde_json::from_str(&docs("grafana-dashboard.json")).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let mut seen = BTreeSet::new();
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "30s").replace("$share", ".*");
            assert!(!query.contains('$'), "{query}");
            wait_for(&query);
            seen.insert(query);
        }
        let place = &panel["gridPos"];
        assert!(place["w"].as_u64().unwrap() + place["x"].as_u64().unwrap() <= 24);
    }
    assert!(seen.len() >= 12, "{seen:?}");
    // The median of the reads on a share, from its buckets, is near that of the rows.
    let median = prometheus
        .query("histogram_quantile(0.5, sum by (le) (rate(smb_smb2_request_duration_microseconds_bucket[30s])))")
        .unwrap();
    let median: f64 = median["data"]["result"][0]["value"][1].as_str().unwrap().parse().unwrap();
    assert!((16_000.0..32_000.0).contains(&median), "{median}");
}

#[test]
fn alert_rules_are_valid() {
    let Some(promtool) = program("promtool") else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus/alerts.yml");
    let checked = Command::new(promtool).args(["check", "rules"]).arg(file).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
