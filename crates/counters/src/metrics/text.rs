//! The text format of Prometheus metrics (version 0.0.4, prometheus.io/docs/instrumenting/
//! exposition_formats), as far as a sampler needs it; OpenMetrics' additions (units, exemplars,
//! `# EOF`) are skipped. Lines that are not understood are counted, the first one is kept.

use std::borrow::Cow;
use std::collections::HashMap;

/// Most samples of one answer.
pub const SAMPLES_MAX: usize = 200_000;
/// Most labels of one sample.
const LABELS_MAX: usize = 32;
/// Most types that are remembered.
const TYPES_MAX: usize = 20_000;

/// The type of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Only grows, until it is reset.
    Counter,
    /// Goes up and down.
    Gauge,
    /// `_bucket`, `_sum` and `_count`.
    Histogram,
    /// Quantiles, `_sum` and `_count`.
    Summary,
    /// Not declared.
    #[default]
    Untyped,
}

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Name of the metric.
    pub name: &'a str,
    /// Labels in the order of the line.
    pub labels: Vec<(&'a str, Cow<'a, str>)>,
    /// The value, which may be infinite or no number.
    pub value: f64,
    /// The type of the metric, or of the family that its suffix shows.
    pub kind: Type,
}

impl Sample<'_> {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|label| label.0 == name).map(|label| label.1.as_ref())
    }
}

/// How well an answer was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Samples found.
    pub samples: usize,
    /// Lines that were not understood.
    pub malformed: usize,
    /// Number of the first of them, from 1.
    pub first_malformed: Option<usize>,
    /// Samples beyond the limit.
    pub dropped: usize,
}

/// Parses an answer.
pub fn parse<'a>(text: &'a str, mut each: impl FnMut(Sample<'a>)) -> Parsed {
    let mut parsed = Parsed::default();
    let mut types: HashMap<&str, Type> = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_ascii_whitespace();
            if let (Some("TYPE"), Some(name), Some(kind)) =
                (words.next(), words.next(), words.next())
                && types.len() < TYPES_MAX
            {
                types.insert(name, type_of(kind));
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        match sample(line) {
            Some(_) if parsed.samples >= SAMPLES_MAX => parsed.dropped += 1,
            Some(mut sample) => {
                sample.kind = kind(&types, sample.name);
                parsed.samples += 1;
                each(sample);
            }
            None => {
                parsed.malformed += 1;
                parsed.first_malformed.get_or_insert(number + 1);
            }
        }
    }
    parsed
}

fn type_of(word: &str) -> Type {
    match word {
        "counter" => Type::Counter,
        "gauge" => Type::Gauge,
        "histogram" | "gaugehistogram" => Type::Histogram,
        "summary" => Type::Summary,
        _ => Type::Untyped,
    }
}

fn kind(types: &HashMap<&str, Type>, name: &str) -> Type {
    if let Some(&kind) = types.get(name) {
        return kind;
    }
    // OpenMetrics declares a counter without its `_total`.
    for suffix in ["_bucket", "_sum", "_count", "_total"] {
        if let Some(kind) = name.strip_suffix(suffix).and_then(|family| types.get(family)) {
            return *kind;
        }
    }
    if name.ends_with("_total") { Type::Counter } else { Type::Untyped }
}

/// `name { label = "value", ... } value [time] [# exemplar]`, with blanks in any place.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(end);
    if !is_name(name) {
        return None;
    }
    let mut rest = rest.trim_start();
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner.trim_start();
        loop {
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = rest.split_once('=')?;
            let (value, after) = quoted(after.trim_start())?;
            if labels.len() < LABELS_MAX {
                labels.push((label.trim(), value));
            }
            let after = after.trim_start();
            rest = after.strip_prefix(',').unwrap_or(after).trim_start();
            if rest.len() == after.len() && !rest.starts_with('}') {
                return None;
            }
        }
    }
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Sample { name, labels, value, kind: Type::Untyped })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
}

/// A text in quotation marks, in which a backslash escapes a backslash, a mark or an `n`; and the rest
/// of the line.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let text = text.strip_prefix('"')?;
    let stop = text.find(['"', '\\'])?;
    if text[stop..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..stop]), &text[stop + 1..]));
    }
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> (Vec<Sample<'_>>, Parsed) {
        let mut samples = Vec::new();
        let parsed = parse(text, |sample| samples.push(sample));
        (samples, parsed)
    }

    #[test]
    fn the_format_of_exporters_is_read() {
        let text = r#"
# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 1.23456e+06
# TYPE smb_smb2_request_total counter
smb_smb2_request_inbytes { share="",operation="create" } 42
# TYPE smb_smb2_request_duration_microseconds histogram
smb_smb2_request_duration_microseconds_bucket {share="a \"b\" \\ \n",operation="read",le="+Inf"} 7
smb_worker_smbd_num 3
go_gc_duration_seconds{quantile="0",} 4e-05 1395066363000 # {trace="x"} 1
temperature NaN
# EOF
"#;
        let (samples, parsed) = all(text);
        assert_eq!(parsed, Parsed { samples: 6, ..Parsed::default() });
        assert_eq!(samples[0].value, 1_234_560.0);
        assert_eq!(samples[0].label("mode"), Some("idle"));
        assert_eq!(samples[0].kind, Type::Counter);
        assert_eq!(samples[1].label("operation"), Some("create"));
        assert_eq!(samples[2].label("share"), Some("a \"b\" \\ \n"));
        assert_eq!(samples[2].kind, Type::Histogram);
        assert_eq!((samples[3].name, samples[3].value), ("smb_worker_smbd_num", 3.0));
        assert_eq!(samples[4].value, 4e-5);
        assert!(samples[5].value.is_nan());
    }

    #[test]
    fn invalid_lines_are_counted() {
        let text = "<html>\nok 1\nno_value\n9digit 1\nx{a=1} 2\nx{a=\"b} 2\nx{a=\"b\" c=\"d\"} 2\nx{a=\"b\"} y\n";
        let (samples, parsed) = all(text);
        assert_eq!(samples.len(), 1);
        assert_eq!((parsed.malformed, parsed.first_malformed), (7, Some(1)));
    }

    #[test]
    fn samples_are_bounded() {
        let text = "a 1\n".repeat(SAMPLES_MAX + 3);
        let mut count = 0;
        assert_eq!(parse(&text, |_| count += 1).dropped, 3);
        assert_eq!(count, SAMPLES_MAX);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}", near in "([a-z_]{0,4}|[{}\"=,\\\\# \n]|é|[0-9.e+]{1,4}){0,80}") {
            all(&text);
            all(&near);
        }

        #[test]
        fn any_label_value_and_number_is_read(value in "(?s).{0,40}", number in -1e300..1e300) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // A carriage return would end the line for `lines`; exporters do not write it.
            prop_assume!(!value.contains('\r'));
            let line = format!("x_total{{l=\"{escaped}\"}} {number}");
            let (samples, parsed) = all(&line);
            prop_assert_eq!(parsed.malformed, 0);
            prop_assert_eq!(samples[0].label("l"), Some(value.as_str()));
            prop_assert_eq!(samples[0].value, number);
        }
    }
}
