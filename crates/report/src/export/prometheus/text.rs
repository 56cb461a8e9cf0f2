//! The text format of OpenMetrics 1.0 (section "Text format"): families with their type and help, samples with
//! escaped labels, the end mark.

use std::fmt::Write as _;

use super::BOUNDS_US;

/// A text that is being written.
#[derive(Default)]
pub(super) struct Writer {
    out: String,
    name: &'static str,
    suffix: &'static str,
    head: String,
}

impl Writer {
    /// Begins a family. Without samples nothing is written of it.
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        self.suffix = if kind == "counter" { "_total" } else { "" };
        self.head = format!("# HELP {name} {}\n# TYPE {name} {kind}\n", escaped(help));
    }

    /// A sample.
    pub(super) fn value(&mut self, labels: &[(&str, &str)], value: u64) {
        self.sample(self.suffix, labels, &value.to_string());
    }

    /// A sample of ns, in seconds.
    pub(super) fn seconds(&mut self, labels: &[(&str, &str)], ns: u64) {
        let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        self.sample(self.suffix, labels, &text);
    }

    /// A classic histogram in µs, with buckets that include all smaller ones.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], buckets: &[u64], sum_ns: u64) {
        let mut count = 0;
        let bounds = BOUNDS_US.iter().map(u64::to_string).chain(["+Inf".to_owned()]);
        for (bound, bucket) in bounds.zip(buckets) {
            count += bucket;
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.sample("_bucket", &labels, &count.to_string());
        }
        self.sample("_sum", labels, &format!("{}.{:03}", sum_ns / 1_000, sum_ns % 1_000));
        self.sample("_count", labels, &count.to_string());
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: &str) {
        self.out.push_str(&std::mem::take(&mut self.head));
        let _ = write!(self.out, "{}{suffix}", self.name);
        for (place, (name, text)) in labels.iter().enumerate() {
            let open = if place == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{open}{name}=\"{}\"", escaped(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{close} {value}");
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str("# EOF\n");
        self.out
    }
}

/// Text of labels and help: names come from strangers.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
