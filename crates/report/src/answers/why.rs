//! The explanation of one operation as text and as JSON: the verdict, the steps, the neighbours on its
//! connection, its open, and how unusual it is.

pub(crate) mod fields;
mod sentences;

use serde_json::{Value, json};
use smbscope_analysis::explain::why::{
    Break, Brief, Explanation, Holder, Miss, Number, Step, StepKind, Which,
};
use smbscope_tables::slice::Kind;

use crate::answers::recording::meta::{Selection, insert_selections};
use crate::document::TextOptions;
use crate::render::{
    Answer,
    table::{self, Column},
    text::folded,
};
use crate::value::{
    Clock,
    format::{self, count, duration},
};
use sentences::{blocking, likes, short_name, status, verdict};

/// Longest paths in tables, characters.
const PATH_MAX: usize = 44;

/// What one operation waited for.
#[derive(Clone, Debug)]
pub struct WhyAnswer<'a> {
    pub explanation: &'a Explanation,
    /// Names of the recordings.
    pub inputs: String,
    /// Which part of the inputs it covers, and which part was kept when they were recorded.
    pub selection: Option<Selection>,
    pub recorded: Option<Selection>,
    /// How times of day are shown.
    pub clock: Clock,
}

impl Answer for WhyAnswer<'_> {
    fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(self.explanation)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("verdict".to_owned(), json!(verdict(self.explanation)));
        }
        insert_selections(&mut value, self.selection.as_ref(), self.recorded.as_ref());
        Ok(value)
    }

    fn text(&self, options: &TextOptions) -> String {
        text(self, options)
    }
}

fn text(answer: &WhyAnswer<'_>, options: &TextOptions) -> String {
    let why = answer.explanation;
    let mut text = String::new();
    let (bold, end) = options.bold;
    folded(&mut text, 0, &heading(answer), options.columns());
    text.push('\n');
    let verdict = format!("{bold}{}{end}", verdict(why));
    folded(&mut text, 0, &verdict, options.columns() + bold.len() + end.len());
    if !why.steps.is_empty() {
        text.push_str("\nWhere the time went\n");
        let rows: Vec<_> = why.steps.iter().map(|step| step_row(step, why)).collect();
        let width = Some(options.columns().saturating_sub(2));
        text.push_str(&indented(&table::lines(&step_columns(), &rows, ("", ""), width)));
    }
    if why.breaks.len() > 1 {
        let all = count(why.breaks_count);
        let shown = if why.breaks_count > why.breaks.len() as u64 { ", the longest" } else { "" };
        text.push_str(&format!("\nBreaks of its file: {all}{shown}\n"));
        text.push_str(&breaks(&why.breaks, options.columns()));
    }
    if !why.holders.is_empty() {
        let all = count(why.holders_count);
        let shown = if why.holders_count > why.holders.len() as u64 { ", the longest" } else { "" };
        text.push_str(&format!("\nHeld by other opens while it waited: {all}{shown}\n"));
        text.push_str(&holders(&why.holders, options.columns()));
    }
    if !why.waiters.is_empty() {
        text.push_str("\nOpens that waited for the break\n");
        text.push_str(&rows(&why.waiters, None, options.columns()));
    }
    if why.operation.brief.request_frame.is_some() || why.operation.brief.elapsed_ns.is_some() {
        text.push('\n');
        folded(&mut text, 0, &format!("Its connection: {}", blocking(why)), options.columns());
    }
    let neighbours = &why.neighbours;
    // A request that waits by design has everything else as its neighbours.
    let is_list = !neighbours.shown.is_empty() && !why.operation.brief.waits;
    if is_list {
        text.push_str(&rows(&neighbours.shown, None, options.columns()));
    }
    if is_list && neighbours.left_out > 0 {
        text.push_str(&format!("  {} more\n", count(neighbours.left_out)));
    }
    if let Some(open) = &why.open {
        text.push_str(&format!("\nIts open: handle {}, {}\n", open.handle, uses(open.uses)));
        text.push_str(&rows(&open.shown, Some(&why.operation.brief), options.columns()));
        let more = open.uses.saturating_sub(open.shown.len() as u64);
        if more > 0 {
            text.push_str(&format!("  {} more\n", count(more)));
        }
    }
    text.push('\n');
    folded(&mut text, 0, &format!("How unusual: {}", likes(why)), options.columns());
    if let Some(filter) = &why.filter {
        // Not folded, so that it can be copied.
        text.push_str(&format!("In Wireshark: {filter}\n"));
    }
    if why.left_out > 0 {
        let more = count(why.left_out);
        folded(
            &mut text,
            0,
            &format!("Not compared: {more} breaks, opens, closes and locks."),
            options.columns(),
        );
    }
    text
}

/// Why there is not one operation to explain, and what to do. `is_part` says whether filter options leave out
/// operations.
pub fn why_miss(which: &Which, miss: &Miss, is_part: bool) -> String {
    let what = match which.number {
        Number::Frame(frame) => format!("frame {frame}"),
        Number::Operation(number) => format!("operation number {number}"),
    };
    match miss {
        Miss::Ambiguous { candidates, count: all } => {
            let files: Vec<_> = candidates.iter().map(|one| &one.capture_file).collect();
            let is_one_file = files.iter().all(|file| Some(*file) == files.first().copied());
            let mut distinct = files.clone();
            distinct.sort();
            distinct.dedup();
            let name = |one: &Brief| {
                let file = one.capture_file.as_ref().or(one.recording.as_ref());
                let file = file.filter(|_| !is_one_file).map_or(String::new(), |file| format!("{file}:"));
                match (which.number, one.operation) {
                    (Number::Frame(frame), _) if distinct.len() == files.len() && !is_one_file => {
                        format!("{file}{frame}")
                    }
                    (_, Some(number)) => format!("{file}op:{number}"),
                    (_, None) => file,
                }
            };
            let list: Vec<_> =
                candidates.iter().map(|one| format!("{} ({})", name(one), place(one))).collect();
            let more = all.saturating_sub(list.len() as u64);
            let more = if more > 0 { format!(" and {} more", count(more)) } else { String::new() };
            format!(
                "--why: {what} fits {} operations; name one of {}{more}",
                count(*all),
                list.join(", ")
            )
        }
        Miss::Missing { operations: 0, .. } => {
            format!("--why: {what}: the input has no operations")
        }
        Miss::Missing { has_frames: false, .. } if matches!(which.number, Number::Frame(_)) => {
            "--why: the operations of this input have no frames; name one by its number: --why op:NUMBER"
                .to_owned()
        }
        Miss::Missing { nearest, operations, .. } => {
            let file = which.file.as_ref().map_or(String::new(), |file| format!(" of {file}"));
            let hint = match which.number {
                Number::Frame(_) if !nearest.is_empty() => {
                    " (name a message of several frames by its first one)"
                }
                _ => "",
            };
            let part = if is_part { "; the filter options may leave it out" } else { "" };
            let nearest = if nearest.is_empty() { format!("; there are {} operations", count(*operations)) } else {
                    let list: Vec<_> = nearest.iter().map(place).collect();
                    format!("; the nearest are {}", list.join(", "))
                };
            format!("--why: {what}{file} belongs to no operation{part}{nearest}{hint}")
        }
    }
}

/// An operation in an error: its frames, command and path.
fn place(brief: &Brief) -> String {
    let frames = frames(brief);
    let front = match (frames.is_empty(), brief.operation) {
        (false, _) => format!("frame {frames} "),
        (true, Some(number)) => format!("op:{number} "),
        (true, None) => String::new(),
    };
    let path = brief.path.as_deref().filter(|path| !path.is_empty());
    let path = path.map_or(String::new(), |path| {
        format!(" {}", format::sanitized(&format::shortened(path, PATH_MAX)))
    });
    format!("{front}{}{path}", short_name(brief))
}

fn heading(answer: &WhyAnswer<'_>) -> String {
    let (inputs, subject) = (&answer.inputs, &answer.explanation.operation);
    let brief = &subject.brief;
    let mut words = Vec::new();
    words.extend(match (brief.request_frame, brief.response_frame) {
        (Some(request), Some(reply)) => {
            Some(format!("request in frame {request}, reply in frame {reply}"))
        }
        (Some(request), None) => Some(format!("request in frame {request}")),
        (None, Some(reply)) => Some(format!("frame {reply}")),
        (None, None) => None,
    });
    words.extend(brief.operation.map(|number| format!("operation {number}")));
    words.extend(subject.start_ns.map(|time| answer.clock.time(time)));
    let end = |address: &Option<String>, port: Option<u16>| {
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        address.as_ref().map(|address| format!("{}{port}", format::sanitized(address)))
    };
    let ends = [end(&brief.client, subject.client_port), end(&subject.server, subject.server_port)];
    let ends: Vec<_> = ends.into_iter().flatten().collect();
    words.push(ends.join(" to "));
    words.extend(
        [&subject.share, &subject.user].into_iter().flatten().map(|name| format::sanitized(name)),
    );
    words.retain(|word| !word.is_empty());
    format!("{inputs}: {}", words.join(", "))
}

/// The frames of request and reply: `7, 12`.
fn frames(brief: &Brief) -> String {
    frame_list([brief.request_frame, brief.response_frame])
}

fn frame_list(frames: [Option<u64>; 2]) -> String {
    let mut frames: Vec<_> = frames.into_iter().flatten().map(|frame| frame.to_string()).collect();
    frames.dedup();
    frames.join(", ")
}

fn uses(uses: u64) -> String {
    format!("{} {}", count(uses), if uses == 1 { "use" } else { "uses" })
}

fn step_columns() -> Vec<Column> {
    vec![
        Column::right("at"),
        Column::right("duration"),
        Column::right("share"),
        Column::left("step"),
        Column::right("frame"),
    ]
}

fn step_row(step: &Step, why: &Explanation) -> Vec<String> {
    let brief = &why.operation.brief;
    let share = match (step.duration_ns, brief.elapsed_ns) {
        (Some(ns), Some(all)) if all > 0 => format::share(ns as f64 / all as f64),
        _ => String::new(),
    };
    let words = match step.kind {
        StepKind::RequestTransfer => "request on the wire".to_owned(),
        StepKind::Interim => "interim response: STATUS_PENDING".to_owned(),
        StepKind::EarlierRequests => {
            "requests before it on its connection were answered".to_owned()
        }
        StepKind::OtherReplies => "replies to other requests on the wire".to_owned(),
        StepKind::Server => "server".to_owned(),
        StepKind::Break => "  from the break of the file on".to_owned(),
        StepKind::Slice => {
            let kind = Kind::ALL.iter().find(|kind| Some(kind.name()) == step.slice);
            let title = kind.map_or("", |kind| kind.title());
            if kind.is_some_and(|kind| kind.group().is_none()) {
                format!("  within these: {}", title.to_lowercase())
            } else {
                format!("  {}", title.to_lowercase())
            }
        }
        StepKind::Unexplained => "  in no slice".to_owned(),
        StepKind::Network => "network round trip".to_owned(),
        StepKind::ServerOrNetwork => "server and network round trip".to_owned(),
        StepKind::Loss => "recovery of lost segments".to_owned(),
        StepKind::ResponseTransfer => "reply on the wire".to_owned(),
    };
    let error = step.error_ns.filter(|ns| *ns > 0 && step.duration_ns.is_some());
    let words = match error {
        Some(ns) => format!("{words} (± {})", duration(ns)),
        None => words,
    };
    vec![
        step.at_ns.map_or(String::new(), duration),
        step.duration_ns.map_or(String::new(), duration),
        share,
        words,
        step.frame.map_or(String::new(), |frame| frame.to_string()),
    ]
}

/// Breaks, one per line.
fn breaks(breaks: &[Break], width: usize) -> String {
    let columns = [
        Column::right("at"),
        Column::right("waited"),
        Column::left("break"),
        Column::left("client"),
        Column::left("answer"),
        Column::left("frames"),
    ];
    let row = |one: &Break| {
        let answer = match &one.answer {
            Some(answer) if answer.is_close => format!("Close after {}", duration(answer.took_ns)),
            Some(answer) => format!("acknowledged after {}", duration(answer.took_ns)),
            None => "none".to_owned(),
        };
        let change = [&one.from, &one.to].into_iter().flatten().map(String::as_str);
        let port = one.client_port.map_or(String::new(), |port| format!(":{port}"));
        let frames = [one.frame, one.answer.as_ref().and_then(|answer| answer.frame)];
        vec![
            duration(one.at_ns),
            duration(one.waited_ns),
            change.collect::<Vec<_>>().join(" to "),
            format!("{}{port}", one.client.as_deref().map_or(String::new(), format::sanitized)),
            answer,
            frame_list(frames),
        ]
    };
    fitted(&columns, &breaks.iter().map(row).collect::<Vec<_>>(), width)
}

/// Locks or opens that were held, one per line.
fn holders(holders: &[Holder], width: usize) -> String {
    let columns = [
        Column::right("from"),
        Column::right("until"),
        Column::left("request"),
        Column::left("client"),
        Column::left("frames"),
    ];
    let row = |one: &Holder| {
        let range = range(&one.brief);
        vec![
            duration(one.from_ns),
            one.until_ns.map_or("not seen".to_owned(), duration),
            format!("{}{range}", short_name(&one.brief)),
            one.brief.client.as_deref().map_or(String::new(), format::sanitized),
            frame_list([one.brief.request_frame, one.until_frame]),
        ]
    };
    fitted(&columns, &holders.iter().map(row).collect::<Vec<_>>(), width)
}

/// Offset and bytes.
fn range(brief: &Brief) -> String {
    match (brief.offset_bytes, brief.bytes) {
        (Some(offset), Some(bytes)) => format!(" {offset}+{bytes}"),
        _ => String::new(),
    }
}

/// Operations, one per line; `own` is marked.
fn rows(briefs: &[Brief], own: Option<&Brief>, width: usize) -> String {
    let columns = [
        Column::right("at"),
        Column::right("took"),
        Column::left("operation"),
        Column::left("path"),
        Column::left("frames"),
    ];
    let cells: Vec<_> = briefs
        .iter()
        .map(|brief| {
            let is_own = own.is_some_and(|own| {
                own.operation == brief.operation && own.request_frame == brief.request_frame
            });
            let took = match (brief.elapsed_ns, brief.request_frame) {
                (Some(ns), _) => duration(ns),
                (None, None) => String::new(),
                (None, _) if brief.at_ns.is_none() => "in compound".to_owned(),
                (None, _) => "no reply".to_owned(),
            };
            let path = brief.path.as_deref().unwrap_or_default();
            let range = range(brief);
            let mark = if is_own { " <- this" } else { "" };
            vec![
                brief.at_ns.map_or(String::new(), duration),
                took,
                format!("{}{range}{}{mark}", short_name(brief), status(brief)),
                format::sanitized(&format::shortened(path, PATH_MAX)),
                frames(brief),
            ]
        })
        .collect();
    fitted(&columns, &cells, width)
}

/// A table whose widest columns are cut so that it fits.
fn fitted(columns: &[Column], rows: &[Vec<String>], width: usize) -> String {
    let mut layout = table::Layout::natural(columns.to_vec(), rows);
    layout.fit(width.saturating_sub(2));
    let mut text = String::new();
    layout.push_header(&mut text, ("", ""));
    for row in rows {
        layout.push_row(&mut text, row.iter().map(String::as_str));
    }
    indented(&text)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
