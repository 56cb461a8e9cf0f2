//! A diagnosis as text: findings for people, most costly first.

pub(crate) mod evidence;
pub(crate) mod fields;
pub(crate) mod logged;
pub(crate) mod section;
pub(crate) mod state;

use serde_json::{Value, json};
use smbscope_analysis::explain::{
    ChangeInTime, Contributor, Diagnosis, Example, Finding, Gain, Pauses, State, Unexplained,
    Whole, is_reported,
};
use smbscope_analysis::processors::Report as CpuReport;
use smbscope_analysis::processors::waiting::Waiting;
use smbscope_findings::{Actor, Figure, Kind, Remedy};

use crate::answers::cpu::cpu_appendix;
use crate::answers::diagnosis::state::state_verdict;
use crate::answers::recording::meta::{Selection, insert_selections};
use crate::document::{CardText, FindingCard, TextOptions};
use crate::render::{
    Answer,
    text::{FINDINGS_SHOWN, folded},
};
use crate::value::{Clock, format};

/// Lines of a diagnosis that does not go to a terminal.
const HEIGHT: usize = 40;
/// In a recording of this length or longer, findings say when they occurred.
const WHEN_MIN_NS: i64 = 5_000_000_000;
/// Remedies per finding that are shown without --all.
const REMEDIES: usize = 2;
/// Examples per finding whose frames are shown.
const FRAMES: usize = 3;

/// Findings on channels that are shown without --all.
const CHANNELS: usize = 4;

/// Kinds of operations without an explanation that are shown.
const KINDS: usize = 3;
/// Shorter pauses in total are not worth a line, ns.
const PAUSES_MIN_NS: i64 = 50_000_000;

/// A diagnosis, with what else is known of the same time.
#[derive(Clone, Debug)]
pub struct DiagnosisAnswer<'a> {
    pub diagnosis: &'a Diagnosis,
    /// Names of the recordings.
    pub inputs: String,
    /// A trace of the same time, and which operations waited for its CPUs; none if they have no time in common.
    pub cpu: Option<(&'a CpuReport, Option<&'a Waiting>)>,
    /// Which part of the inputs it covers, and which part was kept when they were recorded.
    pub selection: Option<Selection>,
    pub recorded: Option<Selection>,
    /// How times of day are shown.
    pub clock: Clock,
}

impl Answer for DiagnosisAnswer<'_> {
    fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(self.diagnosis)?;
        if let (Some((report, waiting)), Some(object)) = (&self.cpu, value.as_object_mut()) {
            let beside = json!({ "findings": report.findings, "waiting": waiting });
            object.insert("processors".to_owned(), beside);
        }
        insert_selections(&mut value, self.selection.as_ref(), self.recorded.as_ref());
        Ok(value)
    }

    fn text(&self, options: &TextOptions) -> String {
        let mut text = explain_text(self, options);
        if let Some((report, waiting)) = self.cpu {
            text.push_str(&cpu_appendix(report, waiting, options.columns()));
        }
        text
    }
}

fn explain_text(answer: &DiagnosisAnswer<'_>, options: &TextOptions) -> String {
    let DiagnosisAnswer { diagnosis, inputs, clock, .. } = answer;
    let Diagnosis { findings, notes, whole, .. } = diagnosis;
    let mut text = String::new();
    let mut line = |indent: usize, words: &str| folded(&mut text, indent, words, options.columns());
    // Event logs alone have no operations.
    let has_logged = !(diagnosis.logged.is_empty() && diagnosis.logged_other.is_empty());
    let has_operations = whole.operations > 0 || !has_logged;
    let parts = match (whole.server_ns, whole.network_ns) {
        (0, 0) => "server and network not known separately".to_owned(),
        // Recorded at the server, the network is not part of the waiting.
        (server, 0) => format!("{} server", format::duration(server)),
        (server, network) => {
            format!("{} server, {} network", format::duration(server), format::duration(network))
        }
    };
    let is_silent = whole.timed == 0 && has_logged;
    if !is_silent {
        let verdict = state_verdict(diagnosis, &speed(diagnosis.p95_ns));
        let (bold, end) = options.toned(verdict.tone);
        line(0, &format!("{bold}{}{end}", verdict.sentence));
        verdict.reasons.last().into_iter().for_each(|account| line(0, account));
        line(0, "");
    }
    if has_operations {
        line(
            0,
            &format!(
                "{inputs}: {} in {}; {} of waiting ({} transfer, {parts}); {} per operation",
                format::counted(whole.operations, "operation"),
                format::duration(whole.lasted_ns),
                format::duration(whole.busy_ns),
                format::duration(whole.transfer_ns),
                format::duration(whole.elapsed_ns_mean),
            ),
        );
    } else {
        line(0, &format!("{inputs}: event logs, without operations"));
        let other = logged::without_trouble(&diagnosis.logged_other);
        other.filter(|_| diagnosis.logged.is_empty()).iter().for_each(|words| line(0, words));
    }
    let reported = if options.all { findings.iter().collect() } else { reported(diagnosis) };
    let most = if options.all { reported.len() } else { FINDINGS_SHOWN };
    let shown = reported.get(..most).unwrap_or(&reported);
    let mut after = String::new();
    for words in context(diagnosis, clock) {
        after.push('\n');
        folded(&mut after, 0, &words, options.columns());
    }
    let mut logged_lines = String::new();
    if !diagnosis.logged.is_empty() {
        logged_lines.push_str("\nLogged by Windows itself\n");
        for row in &diagnosis.logged {
            folded(
                &mut logged_lines,
                2,
                &format::sanitized(&logged::sentence(row)),
                options.columns(),
            );
        }
    }
    after.push_str(&logged_lines);
    if !diagnosis.channels.is_empty() {
        after.push_str("\nChannels\n");
        let most = if options.all { diagnosis.channels.len() } else { CHANNELS };
        for found in diagnosis.channels.iter().take(most) {
            let words = format!("{}: {}", found.kind.title(), found.what);
            folded(&mut after, 2, &format::sanitized(&words), options.columns());
            let most = if options.all { found.remedies.len() } else { 1 };
            for remedy in found.remedies.iter().take(most) {
                folded(
                    &mut after,
                    4,
                    &format!("{}: {}", remedy.at, remedy.action),
                    options.columns(),
                );
            }
        }
    }
    if !notes.is_empty() {
        after.push_str("\nAlso note\n");
        for note in notes {
            folded(&mut after, 2, &format::sanitized(&note.what), options.columns());
        }
    }
    let height = if options.all { usize::MAX } else { options.height.unwrap_or(HEIGHT) };
    if diagnosis.state == State::Healthy && !shown.is_empty() {
        folded(&mut text, 0, "", options.columns());
        folded(&mut text, 0, "Users do not notice it, but this takes the time:", options.columns());
    }
    let room = height.saturating_sub(text.lines().count() + after.lines().count());
    let (findings, is_short) = fitting(shown, |found| when(found, whole, clock), options, room);
    text.push_str(&findings);
    match (reported.len() - shown.len(), is_short) {
        (0, false) => {}
        (0, true) => text.push_str("\n--all shows more of each\n"),
        (more, _) => text.push_str(&format!("\n{more} more: --all shows them\n")),
    }
    text.push_str(&after);
    text
}

/// How long operations take.
pub(crate) fn speed(p95_ns: Option<i64>) -> String {
    match p95_ns {
        Some(ns) => format!("95 of 100 operations take at most {}", format::duration(ns)),
        None => "no operation has a time".to_owned(),
    }
}

/// The findings, with as many details as fit in `room` lines, and whether details were omitted. The last findings
/// lose details first.
fn fitting(
    shown: &[&Finding],
    when: impl Fn(&Finding) -> Option<String>,
    options: &TextOptions,
    room: usize,
) -> (String, bool) {
    let mut without = vec![Without::Nothing; shown.len()];
    // A finding loses its first detail after the next one has lost two.
    let levels = |place| Without::ALL.iter().enumerate().map(move |(n, more)| (n, place, *more));
    let mut order: Vec<_> = (0..shown.len()).rev().flat_map(levels).collect();
    order.sort_by_key(|(n, place, _)| n + 2 * (shown.len() - place));
    order.retain(|(_, place, more)| *place > 0 || *more < Without::Sentence);
    let mut order = order.into_iter();
    loop {
        let mut text = String::new();
        for (place, (found, without)) in shown.iter().zip(&without).enumerate() {
            text.push('\n');
            let when = when(found).map_or(String::new(), |when| format!(", {when}"));
            one(&mut text, place + 1, (found, &when), options, *without);
        }
        // Two more lines are needed for the hint at --all.
        if text.lines().count() + 2 <= room {
            return (text, without.iter().any(|without| *without > Without::Nothing));
        }
        match order.next() {
            Some((_, place, more)) => without[place] = more,
            None => return (text, true),
        }
    }
}

/// What is omitted from a finding; each level includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Without {
    Nothing,
    SecondRemedy,
    /// Operations to look at.
    Examples,
    /// The reason for the confidence.
    Because,
    /// The description and its figures.
    Sentence,
}

impl Without {
    /// In the order in which details are omitted.
    const ALL: [Without; 4] =
        [Without::SecondRemedy, Without::Examples, Without::Because, Without::Sentence];
}

/// The findings that explain enough to be shown.
pub(crate) fn reported(diagnosis: &Diagnosis) -> Vec<&Finding> {
    diagnosis.findings.iter().filter(|found| is_reported(found)).collect()
}

/// Context of the findings: waiting without an explanation, and the clients' pauses.
pub(crate) fn context(diagnosis: &Diagnosis, clock: &Clock) -> Vec<String> {
    let has_findings = findings_are_reported(diagnosis);
    let unexplained = diagnosis.unexplained.as_ref().map(|rest| unexplained(rest, has_findings));
    let change = diagnosis.change.as_ref().map(|found| change(found, clock));
    let pauses = diagnosis.pauses.as_ref().and_then(pauses);
    change.into_iter().chain(unexplained).chain(pauses).collect()
}

fn change(change: &ChangeInTime, clock: &Clock) -> String {
    let at = clock.of_day_and_zone(change.at_ns);
    let (times, which) = match change.times {
        times if times >= 1.0 => (times, "longer"),
        times => (1.0 / times, "shorter"),
    };
    format!(
        "From {at} on, operations take {times:.1} times {which} than before ({} operations before, {} after)",
        format::count(change.operations_before),
        format::count(change.operations_after),
    )
}

fn unexplained(unexplained: &Unexplained, has_findings: bool) -> String {
    let kinds = unexplained.kinds.iter().take(KINDS).map(|kind| {
        let detail = kind.detail.as_ref().map_or(String::new(), |detail| format!(" {detail}"));
        let path = kind.path.as_ref().map_or(String::new(), |path| format!(", most of it {path}"));
        format::sanitized(&format!(
            "{}{detail} {} ({}{path})",
            kind.command,
            format::duration(kind.ns),
            format::count(kind.operations),
        ))
    });
    let (time, share) = (format::duration(unexplained.ns), format::share(unexplained.share));
    let kinds = kinds.collect::<Vec<_>>().join("; ");
    if has_findings {
        format!("No finding explains {time} ({share} of the waiting): {kinds}")
    } else {
        // Where nothing is slow there is nothing to explain.
        format!("Without network round trips, clients waited {time}: {kinds}")
    }
}

fn pauses(pauses: &Pauses) -> Option<String> {
    (pauses.sum_ns >= PAUSES_MIN_NS).then(|| {
        format!(
            "Between requests, clients paused {} in all ({} pauses of less than a second): {}",
            format::duration(pauses.sum_ns),
            format::count(pauses.pauses),
            contributors(&pauses.clients)
        )
    })
}

/// What keeps the network busy, for blocks that go one at a time.
pub(crate) fn needed(found: &Finding) -> Option<String> {
    let figure = |name| found.figure(name);
    let (bytes, depth) = (figure("in_flight_needed")?, figure("depth_needed")?);
    let rate = figure("line").or(figure("throughput_then"))?;
    let larger = figure("larger_block")?;
    let blocks = match (bytes / larger).ceil() {
        1.0 => "blocks".to_owned(),
        n => format!("{} blocks", format::count(n as u64)),
    };
    Some(format!(
        "{}/s need {} in flight at {}: {} requests of {} at once, or {blocks} of {}",
        format::bytes((rate / 8.0) as u64),
        format::bytes(bytes as u64),
        format::duration(figure("round")? as i64),
        format::count(depth as u64),
        format::bytes(figure("block")? as u64),
        format::bytes(larger as u64),
    ))
}

/// The side that can change it, with names where they are known.
pub(crate) fn owner(found: &Finding) -> String {
    let Some(owner) = &found.owner else { return String::new() };
    let names: Vec<_> = owner.names.iter().map(|name| format::sanitized(name)).collect();
    let of = if names.is_empty() { String::new() } else { format!(" {}", names.join(", ")) };
    match owner.actor {
        Actor::Client => format!("client{of}"),
        Actor::Server => format!("server{of}"),
        Actor::Network => format!("network{of}"),
        Actor::Application if names.is_empty() => "application".to_owned(),
        Actor::Application => format!("application on{of}"),
        Actor::Proxy => format!("proxy{of}"),
        Actor::NameService => format!("name service{of}"),
    }
}

fn findings_are_reported(diagnosis: &Diagnosis) -> bool {
    diagnosis.findings.iter().any(is_reported)
}

/// When a finding occurred, for a recording that is long enough for the question.
pub(crate) fn when(found: &Finding, whole: &Whole, clock: &Clock) -> Option<String> {
    let (first, last) = (found.first_ns?, found.last_ns?);
    (whole.lasted_ns >= WHEN_MIN_NS).then(|| clock.period(first, last))
}

/// The cost of a finding, and its certainty.
pub(crate) fn headline(found: &Finding) -> String {
    format!("{} of the waiting, {}", format::share(found.share()), cost(found))
}

/// Likewise without the share.
pub(crate) fn cost(found: &Finding) -> String {
    with_confidence(&format!("{} would be saved", saved(found)), found)
}

/// The time that would be saved, with its interval, or the number of operations if they are few.
pub(crate) fn saved(found: &Finding) -> String {
    let saved = format::duration(found.saved_ns());
    match found.saved_error_ns() {
        Some(error_ns) => format!("{saved} ± {}", format::duration(error_ns)),
        None => format!("{saved} (n = {})", format::count(found.details.operations)),
    }
}

/// The predicted effect of a remedy.
pub(crate) fn gain(gain: &Gain) -> String {
    let (before, after) = (gain.waiting_before_ns, gain.waiting_after_ns);
    let percent = 100.0 * (after as f64 / before.max(1) as f64 - 1.0);
    let error = gain.error_ns.map_or(String::new(), |ns| {
        format!(" ± {}", format::number(100.0 * ns as f64 / before.max(1) as f64))
    });
    format!(
        "with {}, clients would wait {} instead of {} ({percent:+.1}{error} %), predicted by replaying {} operations",
        gain.change,
        format::duration(after),
        format::duration(before),
        if gain.is_part {
            format!("the first {}", format::count(gain.operations))
        } else {
            format::count(gain.operations)
        }
    )
}

/// The affected clients, shares and paths, with `is_all` also the connections.
pub(crate) fn places(found: &Finding, is_all: bool) -> Vec<String> {
    let all = &found.details;
    let connections = if is_all { &all.connections[..] } else { &[] };
    let places = [&all.clients, connections, &all.shares, &all.paths].map(contributors);
    places.into_iter().filter(|words| !words.is_empty()).collect()
}

fn one(
    text: &mut String,
    number: usize,
    (found, when): (&Finding, &str),
    options: &TextOptions,
    without: Without,
) {
    let (bold, end) = options.bold;
    let head = format!("{number}. {bold}{}{end}: {}", found.kind.title(), headline(found));
    folded(text, 0, &head, options.columns() + bold.len() + end.len());
    for words in sentences(found, when, options.all, without) {
        folded(text, 3, &words, options.columns());
    }
}

/// A finding below its title.
fn sentences(found: &Finding, when: &str, is_all: bool, without: Without) -> Vec<String> {
    let mut lines = Vec::new();
    let operations = format::counted(found.details.operations, "operation");
    if without < Without::Sentence {
        lines.push(format!("{}: {operations}{when}.", found.what));
    }
    // What would be needed says most of the figures.
    let needed = needed(found).filter(|_| without < Without::Sentence);
    let is_enough = needed.is_some() && !is_all;
    if let Some(words) = needed {
        lines.push(words);
    }
    let figures = figures(&found.figures);
    if without < Without::Sentence && !figures.is_empty() && !is_enough {
        lines.push(format!("Figures: {}", figures.join("; ")));
    }
    let places = places(found, is_all);
    if !places.is_empty() {
        lines.push(format!("Where: {}", places.join("; ")));
    }
    lines.push(format!("Responsible: {}", owner(found)));
    let frames: Vec<_> = found.details.examples.iter().take(FRAMES).map(example).collect();
    if without < Without::Examples && !frames.is_empty() {
        lines.push(format!("See: {}", frames.join(", ")));
    }
    if without < Without::Because {
        lines.push(format!("Because {}.", found.because));
    }
    let most = match without {
        Without::Nothing if is_all => found.remedies.len(),
        Without::Nothing => REMEDIES,
        _ => 1,
    };
    for remedy in found.remedies.iter().take(most) {
        lines.push(format!("Do ({}): {}", remedy.at, remedy.action));
    }
    let most = if is_all { found.details.gains.len() } else { 1 };
    for words in found.details.gains.iter().take(most).map(gain) {
        lines.push(format!("Effect: {words}"));
    }
    lines
}

/// A finding of a report.
pub(crate) fn card(found: &Finding, when: Option<String>, is_open: bool) -> FindingCard {
    let after = when.as_ref().map_or(String::new(), |when| format!(", {when}"));
    let details = &found.details;
    let before = vec![("When", when.into_iter().collect()), ("Responsible", vec![owner(found)])];
    let then = vec![
        ("Effect", details.gains.iter().map(gain).collect()),
        ("Where", places(found, true)),
        ("Needed", needed(found).into_iter().collect()),
        ("See", details.examples.iter().map(example).collect()),
    ];
    let cost = format!("{} would be saved", saved(found));
    FindingCard {
        share: Some(found.share()),
        evidence: evidence::charts(found),
        text: Some(CardText {
            head: format!("{}: {}", found.kind.title(), headline(found)),
            lines: sentences(found, &after, true, Without::Nothing),
            brief: sentences(found, &after, false, Without::Because),
        }),
        ..cause(found, &cost, before, then, is_open)
    }
}

/// Names of one kind.
fn contributors(names: &[Contributor]) -> String {
    let most = names.iter().take(2).map(|one| {
        format!(
            "{} ({}, {})",
            format::sanitized(&one.name),
            format::count(one.operations),
            format::duration(one.saved_ns)
        )
    });
    most.collect::<Vec<_>>().join(", ")
}

pub(crate) fn example(example: &Example) -> String {
    let took = match example.elapsed_ns {
        Some(ns) => format::duration(ns),
        None => "in a compound".to_owned(),
    };
    match (example.request_frame, example.operation) {
        (Some(frame), _) => format!("frame {frame} ({}, {took})", example.command),
        (None, Some(number)) => format!("operation {number} ({}, {took})", example.command),
        (None, None) => format!("{} ({took})", example.command),
    }
}

/// A finding of any kind as a block: `cost` is what it costs in words; rows before and after what to do.
pub(crate) fn cause<K: Kind, D>(
    found: &smbscope_findings::Finding<K, D>,
    cost: &str,
    before: Vec<(&'static str, Vec<String>)>,
    after: Vec<(&'static str, Vec<String>)>,
    is_open: bool,
) -> FindingCard {
    let remedy = |one: &Remedy| format!("{}: {}", one.at, one.action);
    let mut rows = before;
    rows.push(("Do", found.remedies.iter().map(remedy).collect()));
    rows.extend(after);
    rows.push(("Figures", figures(&found.figures)));
    rows.push(("Because", vec![format!("{}.", found.because)]));
    FindingCard {
        title: found.kind.title(),
        share: None,
        cost: with_confidence(cost, found),
        what: format::capitalized(&found.what),
        rows,
        evidence: Vec::new(),
        text: None,
        is_open,
    }
}

/// What a finding costs, and how sure it is.
fn with_confidence<K, D>(cost: &str, found: &smbscope_findings::Finding<K, D>) -> String {
    let words = [Some(cost), found.confidence.map(|one| one.word())];
    let words: Vec<_> = words.into_iter().flatten().filter(|words| !words.is_empty()).collect();
    words.join("; ")
}

/// The figures that the sentence does not have.
fn figures(figures: &[Figure]) -> Vec<String> {
    figures.iter().filter(|one| !one.phrase.is_empty()).map(figure).collect()
}

fn figure(figure: &Figure) -> String {
    let value = |value: f64| match &*figure.unit {
        "ns" => format::duration(value as i64),
        "bytes" => format::bytes(value as u64),
        "bits/s" => bits(value),
        "share" => format::share(value),
        _ => format::number(value),
    };
    let words = match figure.error.filter(|error| *error > 0.0) {
        Some(error) => format!("{} ± {}", value(figure.value), value(error)),
        None => value(figure.value),
    };
    figure.phrase.replacen("{}", &words, 1)
}

fn bits(bits: f64) -> String {
    match bits {
        bits if bits >= 1e9 => format!("{:.2} Gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.2} Mbit/s", bits / 1e6),
        bits => format!("{:.1} kbit/s", bits / 1e3),
    }
}
