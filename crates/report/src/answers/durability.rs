//! What a durability test found: which ways keep their promise, what was lost, and how old it was.
//!
//! Owns the layout and the sentences. What a promise is, and how blocks are compared, belongs to the crate `load`; the
//! program passes the counts as plain data.

mod page;
pub(crate) mod section;

use serde::Serialize;
use serde_json::Value;

use crate::document::{Document, TextOptions};
use crate::render::{
    Answer,
    table::{Column, lines},
};
use crate::value::format;

/// Losses that the text lists.
const LOSSES_SHOWN: usize = 10;

/// A test: one round or several.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Durability {
    /// The share.
    pub target: String,
    /// The run's identifier.
    pub run: String,
    /// The journal on the client.
    pub journal: String,
    /// Rounds that were verified.
    pub rounds: u64,
    /// Rounds with a broken promise.
    pub rounds_broken: u64,
    /// By way.
    pub ways: Vec<DurableWay>,
    /// What else there is to say, in sentences.
    pub notes: Vec<String>,
    /// Broken promises one by one; not all if there are very many.
    pub losses: Vec<BrokenPromise>,
    /// What was not promised is older than this when it is safe, as far as the rounds show: age of the oldest lost data.
    pub cache_age_ns: Option<i64>,
}

/// What was found in one way of writing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DurableWay {
    pub way: String,
    /// What an application does.
    pub description: String,
    pub rounds: u64,
    pub rounds_broken: u64,
    /// Acknowledged Writes and their bytes.
    pub writes: u64,
    pub bytes: u64,
    /// Bytes that were promised durable.
    pub promised: u64,
    /// Blocks whose newest promise was checked, and those promised shortly before the plug was pulled.
    pub checked: u64,
    pub fresh: u64,
    /// Broken promises, in all and by what is there instead.
    pub broken: u64,
    pub broken_by: Vec<(String, u64)>,
    /// The interval of the share of broken promises among those checked, at 95 %.
    pub risk: Option<(f64, f64)>,
    /// Acknowledged Writes without a promise that are lost.
    pub lost: u64,
    pub lost_by: Vec<(String, u64)>,
    pub lost_bytes: u64,
    /// Their age: from their reply to the last reply.
    pub lost_age_ns_p50: Option<i64>,
    pub lost_age_ns_p95: Option<i64>,
    pub lost_age_ns_max: Option<i64>,
    /// Lost although a later Write to the same file, or to another file, is there.
    pub reordered_in_file: u64,
    pub reordered_across_files: u64,
    /// Blocks that a Write in flight changed in part.
    pub torn_in_flight: u64,
    pub renames: u64,
    pub renames_lost: u64,
    pub rename_age_ns_max: Option<i64>,
    pub renames_before_data: u64,
    pub read_errors: u64,
}

/// A promise that was broken.
#[derive(Clone, Debug, Serialize)]
pub struct BrokenPromise {
    pub round: u32,
    pub way: String,
    /// Path below the share.
    pub path: String,
    pub offset_bytes: u64,
    pub bytes: u64,
    /// What is there instead.
    pub how: String,
    /// Number of the Write, and when its reply was read.
    pub sequence: u64,
    pub acknowledged_ns: i64,
    /// How long before the last reply it was promised.
    pub age_ns: i64,
}

impl Durability {
    /// Broken promises.
    pub fn broken(&self) -> u64 {
        self.ways.iter().map(|way| way.broken).sum()
    }

    /// Whether any promise was broken, or checked so soon that only the promise explains that it was kept.
    pub fn proves(&self) -> bool {
        self.broken() > 0 || self.ways.iter().any(|way| way.fresh > 0)
    }

    /// The answer in one sentence.
    pub fn sentence(&self) -> String {
        let checked: u64 = self.ways.iter().map(|way| way.checked).sum();
        let rounds = if self.rounds == 1 {
            "one round".to_owned()
        } else {
            format!("{} rounds", self.rounds)
        };
        let lost = match self.cache_age_ns {
            Some(age) => format!(
                "; data that was not promised, up to {} old, was lost",
                format::duration(age)
            ),
            None => "; nothing else was lost either".to_owned(),
        };
        if self.broken() == 0 {
            return match checked {
                0 => format!("No promise could be checked in {rounds}{lost}."),
                _ if !self.proves() => format!(
                    "This proves nothing: all {} durable writes that were checked in {rounds} were so old that they would be \
                     there without a promise, too{lost}. Use a lower --rate or more space, so that writes continue until \
                     the power is cut.",
                    format::count(checked)
                ),
                _ => format!(
                    "Every acknowledged durable write was there: {} checked in {rounds}{lost}.",
                    format::count(checked)
                ),
            };
        }
        let broken = self.ways.iter().filter(|way| way.broken > 0);
        let broken: Vec<String> =
            broken.map(|way| format!("{} {}", format::count(way.broken), way.way)).collect();
        format!(
            "{} of {} acknowledged durable writes were lost or damaged in {rounds} ({}){lost}.",
            format::count(self.broken()),
            format::count(checked),
            broken.join(", ")
        )
    }
}

/// A test of durability.
#[derive(Clone, Copy, Debug)]
pub struct DurabilityAnswer<'a> {
    pub test: &'a Durability,
    /// Version of smbscope.
    pub version: &'a str,
}

impl Answer for DurabilityAnswer<'_> {
    fn document(&self) -> Option<Document> {
        Some(page::document(self.test, self.version))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(self.test)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("broken".into(), self.test.broken().into());
            object.insert("sentence".into(), self.test.sentence().into());
        }
        Ok(value)
    }

    fn text(&self, options: &TextOptions) -> String {
        text(self.test, options)
    }
}

fn text(test: &Durability, options: &TextOptions) -> String {
    let mut text = format!("{}{}{}\n\n", options.bold.0, test.sentence(), options.bold.1);
    text += &promises(test, options);
    text += "\n";
    text += &unpromised(test, options);
    let renames = renames(test, options);
    if !renames.is_empty() {
        text += "\n";
        text += &renames;
    }
    for (number, loss) in test.losses.iter().enumerate() {
        if number == 0 {
            text += &format!("\n{}Broken promises{}\n", options.bold.0, options.bold.1);
        }
        if number == LOSSES_SHOWN {
            text += &format!("and {} more (--format json)\n", test.losses.len() - LOSSES_SHOWN);
            break;
        }
        text += &format!(
            "{} at {}+{}: {}, by way {}, round {}, promised {} before the last reply\n",
            loss.path,
            loss.offset_bytes,
            loss.bytes,
            loss.how,
            loss.way,
            loss.round + 1,
            format::duration(loss.age_ns),
        );
    }
    if !test.notes.is_empty() {
        text += "\n";
    }
    for note in &test.notes {
        text += &format!("- {note}\n");
    }
    text
}

/// The verdict on a way, in a word or two.
fn verdict(way: &DurableWay) -> &'static str {
    match (way.broken, way.checked, way.promised) {
        (0, 0, 0) => "no promise",
        (0, 0, _) => "not checked",
        (0, ..) if way.fresh == 0 => "not fresh",
        (0, ..) => "kept",
        _ => "BROKEN",
    }
}

fn promises(test: &Durability, options: &TextOptions) -> String {
    let mut columns = vec![Column::left("Way"), Column::left("Promise")];
    let titles = ["Written", "Promised", "Checked", "Fresh", "Broken", "Risk at 95 %"];
    columns.extend(titles.map(Column::right));
    columns.push(Column::left("Instead"));
    let rows: Vec<Vec<String>> = test
        .ways
        .iter()
        .map(|way| {
            vec![
                way.way.clone(),
                verdict(way).to_owned(),
                format::count(way.writes),
                format::count(way.promised),
                format::count(way.checked),
                format::count(way.fresh),
                format::count(way.broken),
                way.risk.map_or_else(|| "-".to_owned(), |risk| risk_text(risk, way.broken)),
                by(&way.broken_by),
            ]
        })
        .collect();
    lines(&columns, &rows, options.bold, options.width)
}

/// An interval as people read it.
fn risk_text((low, high): (f64, f64), broken: u64) -> String {
    let percent = |share: f64| {
        let digits = if share < 0.001 {
            3
        } else if share < 0.01 {
            2
        } else {
            1
        };
        format!("{:.digits$} %", share * 100.0)
    };
    if broken == 0 {
        format!("at most {}", percent(high))
    } else {
        format!("{} to {}", percent(low), percent(high))
    }
}

fn by(counts: &[(String, u64)]) -> String {
    let counts = counts.iter().map(|(how, count)| format!("{} {how}", format::count(*count)));
    counts.collect::<Vec<_>>().join(", ")
}

fn unpromised(test: &Durability, options: &TextOptions) -> String {
    let mut columns = vec![Column::left("Not promised")];
    let titles = ["Lost", "Bytes", "Age p50", "p95", "max", "Later kept", "of other files", "Half"];
    columns.extend(titles.map(Column::right));
    columns.push(Column::left("Instead"));
    let age = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format::duration);
    let rows: Vec<Vec<String>> = test
        .ways
        .iter()
        .map(|way| {
            vec![
                way.way.clone(),
                format::count(way.lost),
                format::bytes(way.lost_bytes),
                age(way.lost_age_ns_p50),
                age(way.lost_age_ns_p95),
                age(way.lost_age_ns_max),
                format::count(way.reordered_in_file),
                format::count(way.reordered_across_files),
                format::count(way.torn_in_flight),
                by(&way.lost_by),
            ]
        })
        .collect();
    lines(&columns, &rows, options.bold, options.width)
}

fn renames(test: &Durability, options: &TextOptions) -> String {
    let renamed: Vec<&DurableWay> = test.ways.iter().filter(|way| way.renames > 0).collect();
    if renamed.is_empty() {
        return String::new();
    }
    let mut columns = vec![Column::left("Renames")];
    columns.extend(["Done", "Undone", "Age max", "Before their data"].map(Column::right));
    let age = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format::duration);
    let rows: Vec<Vec<String>> = renamed
        .iter()
        .map(|way| {
            vec![
                way.way.clone(),
                format::count(way.renames),
                format::count(way.renames_lost),
                age(way.rename_age_ns_max),
                format::count(way.renames_before_data),
            ]
        })
        .collect();
    lines(&columns, &rows, options.bold, options.width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &str, checked: u64, broken: u64) -> DurableWay {
        DurableWay {
            way: name.into(),
            rounds: 3,
            writes: 2 * checked,
            promised: checked,
            checked,
            fresh: checked / 2,
            broken,
            broken_by: if broken > 0 { vec![("torn-4096".into(), broken)] } else { Vec::new() },
            risk: Some((0.0, 3.0 / checked.max(1) as f64)),
            ..DurableWay::default()
        }
    }

    #[test]
    fn the_sentence_says_what_was_promised_and_what_was_lost() {
        let mut test = Durability { rounds: 3, ..Durability::default() };
        test.ways = vec![way("flush-each", 10_000, 0)];
        test.cache_age_ns = Some(4_800_000_000);
        assert_eq!(
            test.sentence(),
            "Every acknowledged durable write was there: 10,000 checked in 3 rounds; data that was not promised, up to 4.80 s old, was lost."
        );
        // Old data is there without a promise.
        test.ways[0].fresh = 0;
        assert!(
            test.sentence().starts_with("This proves nothing: all 10,000"),
            "{}",
            test.sentence()
        );
        assert_eq!(verdict(&test.ways[0]), "not fresh");
        test.ways.push(way("write-through", 200, 17));
        test.rounds = 1;
        test.cache_age_ns = None;
        assert_eq!(
            test.sentence(),
            "17 of 10,200 acknowledged durable writes were lost or damaged in one round (17 write-through); nothing else was lost either."
        );
        let answer = DurabilityAnswer { test: &test, version: "0.1" };
        let text = answer.text(&TextOptions::default());
        assert!(text.contains("at most 0.030 %") && text.contains("BROKEN"), "{text}");
        assert!(text.contains("17 torn-4096"), "{text}");
        test.target = "//fs/<b>".into();
        let answer = DurabilityAnswer { test: &test, version: "0.1" };
        let html = crate::html(&answer);
        assert!(html.contains("//fs/&lt;b&gt;") && html.contains("verdict bad"), "{html}");
        let json = answer.json().unwrap();
        assert_eq!((&json["broken"], &json["ways"][1]["broken"]), (&17.into(), &17.into()));
    }
}
