//! Tests of the metrics.

use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

use super::*;

/// Operations of a share: SMB2 command, turnaround in µs, status, bytes.
fn batch(share: &str, rows: &[(u16, i64, u32, u64)]) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for &(command, turnaround_us, status, bytes) in rows {
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_command(code::command(2, command));
        row.set_share(builder.names.share.intern(share));
        row.set_turnaround_ns(turnaround_us * 1_000);
        row.set_elapsed_ns(turnaround_us * 1_000 + 500);
        row.set_queue_ns(1_000);
        row.set_status(status);
        row.set_transferred_bytes(bytes);
        row.set_request_wire_bytes(100);
        row.set_response_wire_bytes(200);
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

/// The value of a sample.
fn sample(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

#[test]
fn rows_become_counters_and_histograms() {
    let mut metrics = Metrics::default();
    // READ, READ at the end of the file, a denied CREATE, WRITE.
    let rows = [
        (8, 125, 0, 4_096),
        (8, 1_001, 0xc000_0011, 0),
        (5, 40_000_000, 0xc000_0022, 0),
        (9, 0, 0, 10),
    ];
    metrics.operations(&batch(r"\\FS\Docs", &rows)).unwrap();
    metrics.operations(&batch(r"\\fs.example\docs", &rows[..1])).unwrap();
    let text = metrics.text(Some(&Recorder { packets: Some((9, 2)), ..Recorder::default() }));
    let read = |name: &str, le: &str| {
        sample(&text, &format!("{name}{{operation=\"read\",share=\"docs\"{le}}}"))
    };
    let duration = "smb_smb2_request_duration_microseconds";
    // A bound belongs to its bucket, and buckets include all smaller ones.
    for (le, count) in [("125", 2.0), ("1000", 2.0), ("2000", 3.0), ("+Inf", 3.0)] {
        assert_eq!(
            read(&format!("{duration}_bucket"), &format!(",le=\"{le}\"")),
            Some(count),
            "{le}"
        );
    }
    assert_eq!(read(&format!("{duration}_sum"), ""), Some(1_251.0));
    assert_eq!(read(&format!("{duration}_count"), ""), Some(3.0));
    assert_eq!(read("smb_smb2_request_failed", ""), Some(1.0));
    assert_eq!(read("smbscope_errors_total", ""), Some(0.0));
    assert_eq!(read("smbscope_read_bytes_total", ""), Some(8_192.0));
    assert_eq!(read("smb_smb2_request_inbytes", ""), Some(300.0));
    let denied = "smbscope_errors_total{operation=\"create\",share=\"docs\"}";
    assert_eq!(sample(&text, denied), Some(1.0));
    let slice = "smbscope_slice_duration_microseconds_count{operation=\"read\",slice=\"queue\"}";
    assert_eq!(sample(&text, slice), Some(3.0));
    assert_eq!(sample(&text, "smbscope_recorder_dropped_total{source=\"packets\"}"), Some(2.0));
    assert_eq!(sample(&text, "smbscope_in_flight_seconds_total"), Some(40.0012535));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn every_sample_belongs_to_a_family_before_it() {
    let mut metrics = Metrics::default();
    metrics.operations(&batch(r"\\s\a", &[(5, 1, 0, 0)])).unwrap();
    let mut family = "";
    for line in metrics.text(Some(&Recorder::default())).lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            family = kind.split(' ').next().unwrap();
            assert!(!family.ends_with("_total"), "{family}");
        } else if !line.starts_with('#') {
            assert!(line.starts_with(family), "{line} in {family}");
        }
    }
}

#[test]
fn labels_are_bounded_and_cannot_leave_their_quotes() {
    let mut metrics = Metrics::default();
    for number in 0..SHARES_MAX + 30 {
        let share = format!("\\\\s\\a\"}} 1\n# {number}");
        metrics.operations(&batch(&share, &[(5, 1, 0, 0)])).unwrap();
    }
    let text = metrics.text(None);
    let shares = text.lines().filter(|line| line.starts_with("smbscope_requests_total{")).count();
    assert_eq!(shares, SHARES_MAX + 1);
    assert_eq!(sample(&text, "smbscope_folded_rows_total{label=\"share\"}"), Some(30.0));
    let others = "smbscope_requests_total{operation=\"create\",share=\"other\"}";
    assert_eq!(sample(&text, others), Some(30.0));
    assert!(text.contains("share=\"a\\\"} 1\\n# 3\""));
    assert!(text.lines().all(|line| line.starts_with('#') || line.starts_with("smb")));
    // However many names there are, the text has an end.
    assert!(text.lines().count() < 3_000);
}

/// Names of metrics in a text.
fn names(text: &str) -> std::collections::BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("smb_") || word.starts_with("smbscope_")).collect()
}

#[test]
fn dashboard_and_alerts_use_metrics_that_exist() {
    let mut metrics = Metrics::default();
    metrics.operations(&batch(r"\\s\a", &[(8, 1, 0, 9), (18, 1, 0, 0)])).unwrap();
    let recorder = Recorder { packets: Some((1, 0)), ..Recorder::default() };
    let text = metrics.text(Some(&recorder));
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let samples: std::collections::BTreeSet<_> =
        samples.map(|line| line.split(['{', ' ']).next().unwrap()).collect();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus");
    for file in ["grafana-dashboard.json", "alerts.yml"] {
        let contents = std::fs::read_to_string(folder.join(file)).unwrap();
        let used = names(&contents);
        assert!(used.len() > 3, "{file}");
        for name in used {
            assert!(samples.contains(name), "{file} uses {name}");
        }
    }
}
