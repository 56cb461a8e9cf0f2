//! What a report of Test-SRTopology measured and decided, from its tables.
//!
//! No genuine report was at hand: a row is recognised by its words, in English, as Microsoft's documentation of Storage
//! Replica quotes them. A row that is not recognised decides nothing.

use super::checks::{CheckKind, Outcome};
use super::html::{HtmlRow, HtmlTable, HtmlTables};

/// What a report says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyTest {
    /// Round trip on average and at most, ns.
    pub rtt_ns: Option<i64>,
    pub rtt_max_ns: Option<i64>,
    pub results: Vec<TestResult>,
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    pub kind: CheckKind,
    pub outcome: Outcome,
    /// The test in the report's words.
    pub text: String,
}

/// Words of a test's row in lower case, and the check that it makes; the first that fits counts.
const TESTS: [(&str, CheckKind); 14] = [
    ("sector size", CheckKind::SectorSizes),
    ("log size", CheckKind::LogVolume),
    ("free space", CheckKind::LogVolume),
    ("partition size", CheckKind::VolumeSizes),
    ("volume size", CheckKind::VolumeSizes),
    ("page file", CheckKind::SystemFiles),
    ("dump file", CheckKind::SystemFiles),
    ("physical memory", CheckKind::Servers),
    ("processor", CheckKind::Servers),
    ("file system", CheckKind::Servers),
    ("firewall", CheckKind::Firewall),
    ("connectivity", CheckKind::Firewall),
    ("edition", CheckKind::Edition),
    ("domain", CheckKind::Domain),
];

/// Reads the tables of a report.
pub fn topology_test(report: &HtmlTables) -> TopologyTest {
    let mut test = TopologyTest::default();
    for table in &report.tables {
        for row in &table.rows {
            let words = row.cells.join(" ").to_lowercase();
            if words.contains("latency") && test.rtt_ns.is_none() {
                (test.rtt_ns, test.rtt_max_ns) = round_trip(table, row);
            }
            test.results.extend(result(row, &words));
        }
    }
    test
}

impl TopologyTest {
    /// The worst result about a check.
    pub fn result(&self, kind: CheckKind) -> Option<&TestResult> {
        let of_kind = || self.results.iter().filter(move |result| result.kind == kind);
        of_kind().find(|result| result.outcome != Outcome::Passed).or_else(|| of_kind().next())
    }
}

fn result(row: &HtmlRow, words: &str) -> Option<TestResult> {
    let (_, kind) = TESTS.iter().find(|(part, _)| words.contains(part))?;
    let outcome = match row.cells.last()?.to_lowercase().as_str() {
        "passed" | "pass" | "success" | "succeeded" => Outcome::Passed,
        "failed" | "fail" | "error" => Outcome::Failed,
        "warning" => Outcome::Warning,
        _ => return None,
    };
    let text = row.cells.get(1..row.cells.len() - 1)?.join("; ");
    let text = if text.is_empty() { row.cells.first()?.clone() } else { text };
    Some(TestResult { kind: *kind, outcome, text })
}

/// Average and maximum: in the columns of these names, with the unit in the row's first cell; else a number of ms in a text.
fn round_trip(table: &HtmlTable, row: &HtmlRow) -> (Option<i64>, Option<i64>) {
    let header = table.rows.first();
    let column = |name: &str| {
        let mut titles = header?.cells.iter();
        let place = titles.position(|title| title.to_lowercase().starts_with(name))?;
        let unit = unit_ns(row.cells.first()?)?;
        Some((number(row.cells.get(place)?)? * unit) as i64).filter(|ns| *ns > 0)
    };
    let in_text = || row.cells.iter().find_map(|cell| milliseconds(cell));
    (column("average").or_else(in_text), column("max"))
}

/// The unit in parentheses: `Round trip latency (ms)`.
fn unit_ns(title: &str) -> Option<f64> {
    let (_, unit) = title.rsplit_once('(')?;
    match unit.trim_end().strip_suffix(')')?.trim().to_lowercase().as_str() {
        "s" => Some(1e9),
        "ms" => Some(1e6),
        "us" | "µs" | "μs" => Some(1e3),
        _ => None,
    }
}

/// `6.3ms` or `6,3 ms` within a text, in ns.
fn milliseconds(text: &str) -> Option<i64> {
    let before = text.to_lowercase();
    let (before, _) = before.split_once("ms")?;
    let word = before.split_whitespace().next_back()?;
    Some((number(word)? * 1e6) as i64).filter(|ns| *ns > 0)
}

/// A number with a point or a comma, as the report's system writes it.
fn number(text: &str) -> Option<f64> {
    let value: f64 = text.trim().replace(',', ".").parse().ok()?;
    (value.is_finite() && (0.0..1e9).contains(&value)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::super::html::tables;
    use super::*;

    #[test]
    fn measured_values_and_results_are_read() {
        let page = "<html><h2>Requirements Tests</h2><table><tr><th>Server</th><th>Details</th><th>Result</th></tr>\
            <tr><td>A</td><td>Physical Memory Requirement Test: 4GB</td><td>Passed</td></tr>\
            <tr><td>B</td><td>Log Disk Sector Size Test: 4096 is different from 512</td><td>Failed</td></tr>\
            <tr><td>A</td><td>Log Disk Sector Size Test: equal</td><td>Passed</td></tr>\
            <tr><td>A</td><td>Recommended Log Size Test: E: has 8.5GB</td><td>Warning</td></tr></table>\
            <h2>Performance</h2><table><tr><th>Metric</th><th>Average</th><th>Maximum</th></tr>\
            <tr><td>Round trip latency (ms)</td><td>6,3</td><td>9.8</td></tr></table></html>";
        let test = topology_test(&tables(page.as_bytes()));
        assert_eq!((test.rtt_ns, test.rtt_max_ns), (Some(6_300_000), Some(9_800_000)));
        let outcome = |kind| test.result(kind).map(|result| result.outcome);
        assert_eq!(outcome(CheckKind::SectorSizes), Some(Outcome::Failed));
        assert_eq!(outcome(CheckKind::LogVolume), Some(Outcome::Warning));
        assert_eq!(outcome(CheckKind::Servers), Some(Outcome::Passed));
        assert_eq!(outcome(CheckKind::Firewall), None);
        assert!(test.result(CheckKind::SectorSizes).unwrap().text.contains("different from 512"));
    }

    #[test]
    fn a_latency_in_a_sentence_is_read_and_anything_else_is_not() {
        let of = |cell: &str| {
            let page = format!("<table><tr><td>A</td><td>{cell}</td><td>Passed</td></tr></table>");
            topology_test(&tables(page.as_bytes())).rtt_ns
        };
        assert_eq!(of("Network Latency Test: average round trip of 2 ms"), Some(2_000_000));
        assert_eq!(of("Network Latency Test: 0.35ms"), Some(350_000));
        for text in
            ["Network Latency Test", "Latency: many ms", "Latency: -1 ms", "Latency: 1e99 ms"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
