//! Counter logs of Windows as text (`typeperf`, `logman -f csv`, `relog -f csv`; esxtop writes the same): rows of the
//! table `counters`.
//!
//! The first line names the counters by their paths (`\\HOST\Object(instance)\Counter`), after the form of the log and the
//! time zone as minutes from local time to UTC: `"(PDH-CSV 4.0) (W. Europe Standard Time)(-60)"`. Each other line has a
//! time (month/day/year) and a value for each of them; one that is not known is empty. Names of counters and of objects are
//! those of an English Windows. A Windows whose numbers have a comma before the fraction may write it here, too: then all
//! values have it. What smbscope knows gets the name that it has on Linux (docs/method/counters.md).

mod known;

use std::io::{self, BufRead, Read};

use smbscope_tables::Part;
use smbscope_tables::date;
use smbscope_tables::tables::{Counter, Coverage as Coverages};

use crate::event::{Coverage, Event, EventReader};
use known::Column;

/// Beginnings of the first line, without the quotation mark.
const COMMAS: &str = "(PDH-CSV 4.0)";
const TABS: &str = "(PDH-TSV 4.0)";
/// Longer lines are damaged; a name has up to 1 KiB.
const LINE_BYTES_MAX: u64 = 32 << 20;
/// More counters are left out.
const COLUMNS_MAX: usize = 50_000;
/// Lines before the first one that are skipped: typeperf begins with an empty one.
const LINES_BEFORE: usize = 4;
/// Rows of a part.
const ROWS: usize = 4_096;
const SECOND_NS: i64 = 1_000_000_000;
/// How the vantage is known.
const REASON: &str = "performance counters have no packets";

/// Whether a file that begins with `head` is such a log.
pub fn is_counter_log(head: &str) -> bool {
    let mut lines = head.trim_start_matches('\u{feff}').lines().take(LINES_BEFORE);
    lines.find(|line| !line.trim().is_empty()).and_then(delimiter).is_some()
}

/// What separates the fields of a log whose first line this is.
fn delimiter(first: &str) -> Option<u8> {
    let first = first.trim_start_matches('"');
    match first {
        _ if first.starts_with(COMMAS) => Some(b','),
        _ if first.starts_with(TABS) => Some(b'\t'),
        _ => None,
    }
}

/// Reads a log.
pub struct Reader<R> {
    source: R,
    recording: String,
    line: Vec<u8>,
    head: Option<Head>,
    rows: Vec<Counter>,
    parts: Vec<Part>,
    coverage: Coverage,
    lines: u64,
    /// Values that the log does not have.
    missing: u64,
    /// What stands before the fraction of the log's numbers, once it is known.
    point: Option<char>,
}

/// What the first line says.
struct Head {
    delimiter: u8,
    /// From local time to UTC; `None` if it does not say.
    bias_minutes: Option<i64>,
    columns: Vec<Option<Column>>,
    sums: Vec<known::Derived>,
    source: &'static str,
}

impl<R: BufRead> Reader<R> {
    /// A reader of a log, whose rows have that name of their recording.
    pub fn new(source: R, recording: &str) -> Reader<R> {
        Reader {
            source,
            recording: recording.to_owned(),
            line: Vec::new(),
            head: None,
            rows: Vec::new(),
            parts: Vec::new(),
            coverage: Coverage { format: "Windows counter log".to_owned(), ..Coverage::default() },
            lines: 0,
            missing: 0,
            point: None,
        }
    }

    fn damaged(&mut self, what: &str) {
        let line = self.lines;
        self.coverage.damaged += 1;
        self.coverage.first_damaged.get_or_insert_with(|| format!("line {line}: {what}"));
    }

    /// Reads one line; false at the end.
    fn next_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut limited = self.source.by_ref().take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.line)? as u64;
        self.coverage.read_bytes += read;
        self.lines += 1;
        if read == LINE_BYTES_MAX && !self.line.ends_with(b"\n") {
            self.damaged("it is too long");
            self.skip_line()?;
            self.line.clear();
        }
        Ok(read > 0)
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let ready = self.source.fill_buf()?;
            let end = ready.iter().position(|&byte| byte == b'\n').map(|end| end + 1);
            let used = end.unwrap_or(ready.len());
            self.source.consume(used);
            self.coverage.read_bytes += used as u64;
            if end.is_some() || used == 0 {
                return Ok(());
            }
        }
    }

    fn head(&mut self, line: &str) {
        let line = line.trim_start_matches('\u{feff}');
        let Some(delimiter) = delimiter(line) else { return self.damaged("no names of counters") };
        let fields = fields(line, delimiter);
        let mut paths = fields.iter();
        let form = paths.next().unwrap_or_default();
        let all: Vec<_> = paths.collect();
        self.coverage.limited += all.len().saturating_sub(COLUMNS_MAX) as u64;
        let paths = all.get(..COLUMNS_MAX).unwrap_or(&all);
        let (columns, sums) = known::columns(paths);
        let has = |object: &str| paths.iter().any(|path| path.contains(object));
        let source = match () {
            () if has(r"\SMB Server") => "server",
            () if has(r"\SMB Client Shares") => "client",
            () => "metrics",
        };
        self.head = Some(Head { delimiter, bias_minutes: bias(form), columns, sums, source });
    }

    fn values(&mut self, line: &str) {
        let Some(head) = &self.head else { return };
        let fields = fields(line, head.delimiter);
        let mut fields = fields.iter();
        let bias_ns = head.bias_minutes.unwrap_or(0).saturating_mul(60 * SECOND_NS);
        let time = fields.next().and_then(|text| time_ns(text)?.checked_add(bias_ns));
        let Some(time) = time else {
            // typeperf ends with words.
            if line.starts_with('"') {
                self.damaged("no time of the form month/day/year hours:minutes:seconds");
            }
            return;
        };
        let mut wrong = (0, None);
        let mut columns = head.columns.iter();
        let mut number = |text: &str| {
            let is_known = columns.next().is_some_and(Option::is_some);
            let text = text.trim();
            let value = number(text, &mut self.point);
            if is_known && value.is_none() && !text.is_empty() {
                wrong = (wrong.0 + 1, wrong.1.take().or_else(|| Some(text.to_owned())));
            }
            value
        };
        let values: Vec<_> = fields.map(&mut number).collect();
        let value = |place: usize| values.get(place).copied().flatten();
        let (mut events, mut missing) = (0, 0);
        let mut row = |name: &str, instance: &Option<String>, unit: &str, value: f64| {
            // In another unit it can be too large.
            if !value.is_finite() {
                return;
            }
            events += 1;
            self.rows.push(Counter {
                recording: self.recording.clone(),
                time,
                source: head.source.to_owned(),
                name: name.to_owned(),
                instance: instance.clone(),
                unit: unit.to_owned(),
                value,
            });
        };
        for (place, column) in head.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            match value(place) {
                Some(value) => {
                    row(&column.name, &column.instance, column.unit, value * column.factor);
                }
                None => missing += 1,
            }
        }
        for derived in &head.sums {
            if let Some(value) = derived.value(&value) {
                row(derived.name, &None, derived.unit, value);
            }
        }
        // What is there and cannot be read is damage, not a gap.
        self.missing += u64::saturating_sub(missing, wrong.0);
        let coverage = &mut self.coverage;
        coverage.events += events;
        coverage.at(time);
        if let (count @ 1.., Some(text)) = wrong {
            let shown: String = text.chars().take(40).collect();
            self.damaged(&format!("`{shown}` is not a number"));
            self.coverage.damaged += count - 1;
        }
        if self.rows.len() >= ROWS {
            self.parts.push(Part::Counters(std::mem::take(&mut self.rows)));
        }
    }

    fn end(&mut self) {
        if !self.rows.is_empty() {
            self.parts.push(Part::Counters(std::mem::take(&mut self.rows)));
        }
        let mut notes = vec![format!("{} values of counters", self.coverage.events)];
        if self.missing > 0 {
            notes.push(format!("{} values are missing in the log", self.missing));
        }
        if self.head.as_ref().is_some_and(|head| head.bias_minutes.is_none()) {
            notes
                .push("the log does not say its time zone: its times are taken for UTC".to_owned());
        }
        let coverage = &self.coverage;
        self.parts.push(Part::Coverage(Box::new(Coverages {
            recording: self.recording.clone(),
            format: coverage.format.clone(),
            vantage_reason: REASON.to_owned(),
            start: coverage.start_ns,
            end: coverage.end_ns,
            file_bytes: coverage.read_bytes,
            messages_malformed: coverage.damaged,
            cut_off: coverage.first_damaged.clone(),
            notes: Some(format!("{}.", notes.join("; "))),
            ..Coverages::default()
        })));
    }
}

impl<R: BufRead> EventReader for Reader<R> {
    fn step(&mut self, _: &mut dyn FnMut(Event)) -> io::Result<bool> {
        if !self.next_line()? {
            self.end();
            return Ok(false);
        }
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        match text.trim_end() {
            "" => {}
            line if self.head.is_none() => self.head(line),
            line => self.values(line),
        }
        self.line = line;
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        self.coverage.clone()
    }

    fn read_bytes(&self) -> u64 {
        self.coverage.read_bytes
    }

    fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }
}

/// The fields of a line. A quotation mark within quotation marks is written twice.
fn fields(line: &str, delimiter: u8) -> csv::StringRecord {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    // It is text in memory: there is nothing that could fail.
    let _ = reader.read_record(&mut record);
    record
}

/// A value; `point` is what stands before the fraction in the log's other numbers. A log with both is not read as
/// one with commas: it is not known which of them separate thousands.
fn number(text: &str, point: &mut Option<char>) -> Option<f64> {
    let (separator, value) = match (text.contains('.'), text.matches(',').count()) {
        (false, 1) => (Some(','), text.replace(',', ".").parse::<f64>()),
        (true, _) => (Some('.'), text.parse::<f64>()),
        (false, _) => (None, text.parse::<f64>()),
    };
    let value = value.ok().filter(|value| value.is_finite())?;
    if separator.is_some() && *point.get_or_insert(separator?) != separator? {
        return None;
    }
    Some(value)
}

/// Minutes from local time to UTC: the last number in parentheses.
fn bias(form: &str) -> Option<i64> {
    let (_, last) = form.rsplit_once('(')?;
    let minutes = last.strip_suffix(')')?.parse::<i64>().ok()?;
    (minutes.abs() <= 24 * 60).then_some(minutes)
}

/// `11/27/2026 04:00:01.123` in ns since 1970, without a time zone.
fn time_ns(text: &str) -> Option<i64> {
    let (day, time) = text.trim().split_once(' ')?;
    let numbers = |text: &str, by: char| -> Option<[i64; 3]> {
        let mut parts = text.split(by).map(|part| part.parse::<i64>());
        let all = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
        parts.next().is_none().then_some(all)
    };
    let [month, day, year] = numbers(day, '/')?;
    let (whole, part) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(whole, ':')?;
    let is_time = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (1970..=2200).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (1..=9).contains(&part.len());
    let digits = u32::try_from(part.len()).ok().filter(|_| is_time)?;
    let part: i64 = part.parse().ok().filter(|part| *part >= 0)?;
    let part_ns = part * 10_i64.checked_pow(9_u32.checked_sub(digits)?)?;
    let seconds = ((date::days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    seconds.checked_mul(SECOND_NS)?.checked_add(part_ns)
}

#[cfg(test)]
mod tests;
