//! Coverage first: what was seen, lost and not understood, and where the capture was taken.

use smbscope_analysis::summary::Report;
use smbscope_tables::code::Vantage;
use smbscope_tables::run::LOAD_FORMAT;
use smbscope_tables::tables::Coverage;

use crate::answers::recording::fields::{column, fact, field};
use crate::answers::recording::meta::Selection;
use crate::document::{Block, Cell, Fact, Facts, Section, Table};

/// Recordings that get a list of facts of their own; more are a table.
const LISTED_MAX: usize = 4;

pub(crate) fn coverage(report: &Report) -> Section {
    let mut blocks = Vec::new();
    if report.coverage.is_empty() {
        blocks.push(Block::Note(
            "These operations have no coverage record, so losses are unknown.".to_owned(),
        ));
    } else if report.coverage.len() <= LISTED_MAX {
        for row in &report.coverage {
            blocks.push(Block::Facts(seen(row)));
            blocks.push(lost(row));
        }
    } else {
        blocks.push(Block::Table(table(&report.coverage)));
        blocks.push(lost(&sum(&report.coverage)));
    }
    Section {
        id: "coverage",
        title: "Coverage",
        help: "What was recorded, what was lost, and how far the numbers of this report can be trusted.",
        blocks,
    }
}

/// What a reader must know before any number: packets that were lost, and inputs that end early.
pub(crate) fn notices(report: &Report) -> Vec<Block> {
    let mut row = sum(&report.coverage);
    let mut said = Vec::new();
    if let Some(how) = row.cut_off.take() {
        said.push(format!("The input is not complete: {how}."));
    }
    let parts = [
        (row.frames_dropped.unwrap_or(0), "packets dropped by the recorder"),
        (row.events_lost.unwrap_or(0), "events lost by the recorder"),
        (row.buffers_lost.unwrap_or(0), "buffers lost by the recorder, each with many events"),
        (row.records_damaged, "damaged records or buffers of a log"),
        (row.gaps, "gaps in TCP streams"),
        (row.decryption_failed, "messages that could not be decrypted"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what}: {}", crate::value::format::count(*count)))
        .collect();
    if !parts.is_empty() {
        said.push(format!(
            "Part of the traffic is missing ({}). The section Coverage has all counters.",
            parts.join(", ")
        ));
    }
    said.extend(forgotten(&row));
    let cut = row.messages_cut.saturating_add(row.members_not_captured);
    if cut > 0 && row.frames_cut > 0 {
        let messages =
            report.coverage.iter().fold(0, |sum: u64, row| sum.saturating_add(row.messages));
        said.push(format!(
            "The packets were cut too short for {} of {} messages (snap length): names, sizes and statuses in them are not \
             known, and findings may be missing. Record at least 512 bytes of each packet.",
            crate::value::format::count(cut),
            crate::value::format::count(messages.saturating_add(row.members_not_captured))
        ));
    }
    said.extend(counted_twice(&report.coverage));
    let encrypted = row.messages_encrypted.saturating_sub(row.messages_decrypted);
    if encrypted > 0 {
        said.push(format!(
            "{} messages are encrypted and could not be read: {}.",
            crate::value::format::count(encrypted),
            locked(&row)
        ));
    }
    said.into_iter().map(Block::Warn).collect()
}

/// What the limits of the decoder removed, by kind.
fn forgotten(row: &Coverage) -> Option<String> {
    let parts = [
        (row.sessions_forgotten, "sessions, whose later operations have no user"),
        (row.trees_forgotten, "trees, whose later operations have no share"),
        (row.handles_forgotten, "opens, whose later operations have no path"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", crate::value::format::count(*count)))
        .collect();
    (row.sessions_forgotten + row.trees_forgotten > 0 || row.handles_forgotten >= FORGOTTEN_MIN).then(|| {
        format!(
            "The decoder forgot {} before their end, because there were too many at once. --memory with a larger size keeps \
             more names.",
            parts.join("; ")
        )
    })
}

/// Opens that are forgotten without a limit, because their Close was lost and another got the same FileId, are few.
const FORGOTTEN_MIN: u64 = 100;

/// Two inputs of the same time, one from inside a server and one of its packets, may show the same operations. A client's
/// recording is another side of them, and joined.
fn counted_twice(rows: &[Coverage]) -> Option<String> {
    let client = Vantage::Client.name();
    let inside = Vantage::Inside.name();
    let is_inside = |row: &&Coverage| row.vantage.as_deref() == Some(inside) && row.operations > 0;
    let is_wire = |row: &&Coverage| {
        let vantage = row.vantage.as_deref();
        row.frames > 0 && row.operations > 0 && vantage != Some(inside) && vantage != Some(client)
    };
    let is_same_time = |a: &Coverage, b: &Coverage| {
        let begin = a.start.zip(b.start).map(|(a, b)| a.max(b));
        let end = a.end.zip(b.end).map(|(a, b)| a.min(b));
        begin.zip(end).is_some_and(|(begin, end)| begin < end)
    };
    let mut pairs = rows.iter().filter(is_inside).flat_map(|row| {
        rows.iter().filter(is_wire).filter(|other| is_same_time(row, other)).map(move |b| (row, b))
    });
    let (row, other) = pairs.next()?;
    Some(format!(
        "{} was recorded inside a server, and {} on the network at the same time: operations that both show count twice. \
         Give one of them.",
        name(row),
        name(other)
    ))
}

/// Why sessions could not be decrypted, or what to do about it.
fn locked(row: &Coverage) -> String {
    let parts = [
        (row.sessions_wrong_secret, "the given secret does not match"),
        (row.sessions_without_secret, "no secret was given for the account or service"),
        (row.sessions_without_logon, "the logon was not captured in full"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{why} (sessions: {})", crate::value::format::count(*count)))
        .collect();
    match parts.is_empty() {
        true if row.sessions_unlocked > 0 => "they belong to no session that was set up".to_owned(),
        true => {
            "give a password, a keytab, or keys of these sessions (each key is that of one session id); or record inside the server".to_owned()
        }
        false => parts.join("; "),
    }
}

/// Which part of the inputs the report covers.
pub(crate) fn selected(selection: &Selection) -> Block {
    let text = selection.text();
    Block::Note(format!(
        "This report covers {text}. The section Coverage describes the inputs as a whole; counters, steps and scenarios of load runs are limited by time alone."
    ))
}

/// Which part of what was seen is in the inputs.
pub(crate) fn recorded(selection: &Selection) -> Block {
    let text = selection.text();
    Block::Note(format!(
        "The recording kept {text}. The section Coverage describes everything that was seen."
    ))
}

fn seen(row: &Coverage) -> Facts {
    if row.format == LOAD_FORMAT {
        return load_facts(row);
    }
    let of = |name: &str, value: Cell| fact("coverage", name, value);
    let span = match (row.start, row.end) {
        (Some(start), Some(end)) => of("start", Cell::Time(start))
            .noted(format!("for {}", crate::value::format::duration(end.saturating_sub(start)))),
        _ => of("start", Cell::Empty),
    };
    let resolution = match row.resolution_ns {
        Some(ns) => format!(
            "{}, time stamps to {}",
            row.format,
            crate::value::format::duration(i64::try_from(ns).unwrap_or(i64::MAX))
        ),
        None => row.format.clone(),
    };
    let mut rows = vec![
        of("format", Cell::Text(resolution)),
        span,
        of("vantage", Cell::Text(row.vantage.clone().unwrap_or_else(|| "not known".to_owned())))
            .titled("Taken at")
            .noted(row.vantage_reason.clone()),
    ];
    if let Some(notes) = &row.notes {
        rows.push(of("notes", Cell::Text(notes.clone())));
    }
    // Inside the server there are messages, not packets.
    if row.vantage.as_deref() != Some(Vantage::Inside.name()) {
        let packets = of("frames", Cell::Count(row.frames)).titled("Packets");
        rows.push(
            packets.noted(format!("{} on the wire", crate::value::format::bytes(row.wire_bytes))),
        );
    }
    if let Some(unwrapped) = &row.unwrapped {
        rows.push(of("unwrapped", Cell::Text(unwrapped.clone())));
    }
    if row.fragments_reassembled > 0 {
        rows.push(of("fragments_reassembled", Cell::Count(row.fragments_reassembled)));
    }
    rows.extend([
        of("connections", Cell::Count(row.connections)).noted(mid_stream(row)),
        of("messages", Cell::Count(row.messages)),
        of("operations", Cell::Count(row.operations)).noted(cut_to_nothing(row)),
        drops(row),
    ]);
    Facts { caption: name(row).to_owned(), rows }
}

/// A load run knows what it sent, not packets.
fn load_facts(row: &Coverage) -> Facts {
    let of = |name: &str, value: Cell| fact("coverage", name, value);
    let span = match (row.start, row.end) {
        (Some(start), Some(end)) => of("start", Cell::Time(start))
            .noted(format!("for {}", crate::value::format::duration(end.saturating_sub(start)))),
        (start, _) => of("start", start.map_or(Cell::Empty, Cell::Time)),
    };
    Facts {
        caption: name(row).to_owned(),
        rows: vec![
            of("format", Cell::Text(row.format.clone()))
                .noted("recorded by the client itself: every operation that it sent, no packets"),
            span.titled("Start"),
            of("connections", Cell::Count(row.connections)),
            of("operations", Cell::Count(row.operations)),
        ],
    }
}

fn mid_stream(row: &Coverage) -> String {
    let parts = [
        (row.connections_mid_stream, "begun before the capture"),
        (row.connections_one_direction, "seen in one direction only"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", crate::value::format::count(*count)))
        .collect();
    parts.join(", ")
}

/// What to do about a capture whose packets end before the headers of SMB do.
fn cut_to_nothing(row: &Coverage) -> &'static str {
    if row.operations == 0 && row.messages > 0 && row.messages_cut == row.messages {
        "truncated within the SMB header; capture at least 128 bytes of each packet, 256 for names"
    } else {
        ""
    }
}

fn drops(row: &Coverage) -> Fact {
    if let Some(lost) = row.events_lost {
        return fact("coverage", "events_lost", Cell::Count(lost))
            .titled("Events lost by recorder");
    }
    match row.frames_dropped {
        Some(dropped) => fact("coverage", "frames_dropped", Cell::Count(dropped)),
        None => fact("coverage", "frames_dropped", Cell::Text("not known".to_owned()))
            .noted("not reported by the recorder"),
    }
    .titled("Dropped by recorder")
}

type Counter = (&'static str, fn(&mut Coverage) -> &mut u64);

/// The counters of what was lost or not understood.
const LOST: [Counter; 49] = [
    ("records_damaged", |row| &mut row.records_damaged),
    ("frames_cut", |row| &mut row.frames_cut),
    ("frames_link_unknown", |row| &mut row.frames_link_unknown),
    ("frames_tunnelled", |row| &mut row.frames_tunnelled),
    ("frames_fragment", |row| &mut row.frames_fragment),
    ("frames_malformed", |row| &mut row.frames_malformed),
    ("frames_not_tcp", |row| &mut row.frames_not_tcp),
    ("frames_not_smb", |row| &mut row.frames_not_smb),
    ("datagrams_not_sessions", |row| &mut row.datagrams_not_sessions),
    ("frames_ipx", |row| &mut row.frames_ipx),
    ("quic_connections", |row| &mut row.quic_connections),
    ("quic_maybe_smb", |row| &mut row.quic_maybe_smb),
    ("frames_time_backwards", |row| &mut row.frames_time_backwards),
    ("clock_steps", |row| &mut row.clock_steps),
    ("frames_repeated", |row| &mut row.frames_repeated),
    ("connections_evicted", |row| &mut row.connections_evicted),
    ("retransmissions", |row| &mut row.retransmissions),
    ("out_of_order", |row| &mut row.out_of_order),
    ("gaps", |row| &mut row.gaps),
    ("gap_bytes", |row| &mut row.gap_bytes),
    ("segments_discarded", |row| &mut row.segments_discarded),
    ("resynchronised", |row| &mut row.resynchronised),
    ("skipped_bytes", |row| &mut row.skipped_bytes),
    ("frames_roce_other", |row| &mut row.frames_roce_other),
    ("smb_direct_unknown", |row| &mut row.smb_direct_unknown),
    ("smb_direct_given_up", |row| &mut row.smb_direct_given_up),
    ("messages_cut", |row| &mut row.messages_cut),
    ("members_not_captured", |row| &mut row.members_not_captured),
    ("messages_malformed", |row| &mut row.messages_malformed),
    ("messages_unknown", |row| &mut row.messages_unknown),
    ("decryption_failed", |row| &mut row.decryption_failed),
    ("sessions_wrong_secret", |row| &mut row.sessions_wrong_secret),
    ("sessions_without_secret", |row| &mut row.sessions_without_secret),
    ("sessions_without_logon", |row| &mut row.sessions_without_logon),
    ("decompression_failed", |row| &mut row.decompression_failed),
    ("operations_unanswered", |row| &mut row.operations_unanswered),
    ("replies_unmatched", |row| &mut row.replies_unmatched),
    ("operations_discarded", |row| &mut row.operations_discarded),
    ("commands_unknown", |row| &mut row.commands_unknown),
    ("handles_forgotten", |row| &mut row.handles_forgotten),
    ("sessions_forgotten", |row| &mut row.sessions_forgotten),
    ("trees_forgotten", |row| &mut row.trees_forgotten),
    ("paths_unknown", |row| &mut row.paths_unknown),
    ("operations_unjoined", |row| &mut row.operations_unjoined),
    ("operations_without_slices", |row| &mut row.operations_without_slices),
    ("events_unexplained", |row| &mut row.events_unexplained),
    ("flushes_ambiguous", |row| &mut row.flushes_ambiguous),
    ("state_discarded", |row| &mut row.state_discarded),
    ("messages_encrypted", |row| &mut row.messages_encrypted),
];

fn lost(row: &Coverage) -> Block {
    let mut row = row.clone();
    let mut rows = Vec::new();
    if let Some(how) = &row.cut_off {
        rows.push(fact("coverage", "cut_off", Cell::Text(how.clone())));
    }
    let by_recorder = [
        ("frames_dropped", row.frames_dropped),
        ("events_lost", row.events_lost),
        ("buffers_lost", row.buffers_lost),
    ];
    for (name, lost) in by_recorder {
        if let Some(lost @ 1..) = lost {
            rows.push(fact("coverage", name, Cell::Count(lost)));
        }
    }
    let (decrypted, unlocked) = (row.messages_decrypted, row.sessions_unlocked);
    for (name, counter) in LOST {
        let value = *counter(&mut row);
        if value == 0 {
            continue;
        }
        let cell = match field("coverage", name).format {
            crate::value::Format::Bytes => Cell::Bytes(value),
            _ => Cell::Count(value),
        };
        let fact = fact("coverage", name, cell);
        rows.push(match name {
            "messages_encrypted" => {
                let decrypted = crate::value::format::count(decrypted);
                fact.noted(match unlocked {
                    0 => format!("{decrypted} of them decrypted"),
                    _ => format!(
                        "{decrypted} of them decrypted; sessions whose key was computed: {}",
                        crate::value::format::count(unlocked)
                    ),
                })
            }
            _ => {
                let help = fact.help;
                fact.noted(help)
            }
        });
    }
    if rows.is_empty() {
        return Block::Note("No data was lost, truncated or undecodable.".to_owned());
    }
    Block::Facts(Facts { caption: "Lost, truncated or undecodable".to_owned(), rows })
}

/// The input's own name.
fn name(row: &Coverage) -> &str {
    row.capture_file.as_deref().unwrap_or(&row.recording)
}

fn sum(rows: &[Coverage]) -> Coverage {
    let mut sum = Coverage::default();
    for row in rows {
        let mut row = row.clone();
        for (_, counter) in LOST {
            let value = *counter(&mut row);
            let total = counter(&mut sum);
            *total = total.saturating_add(value);
        }
        sum.messages_decrypted = sum.messages_decrypted.saturating_add(row.messages_decrypted);
        sum.sessions_unlocked = sum.sessions_unlocked.saturating_add(row.sessions_unlocked);
        let add = |sum: &mut Option<u64>, lost: Option<u64>| {
            if let Some(lost) = lost {
                *sum = Some(sum.unwrap_or(0).saturating_add(lost));
            }
        };
        add(&mut sum.frames_dropped, row.frames_dropped);
        add(&mut sum.events_lost, row.events_lost);
        add(&mut sum.buffers_lost, row.buffers_lost);
        let cut = row.cut_off.as_ref().map(|how| format!("{}: {how}", name(&row)));
        sum.cut_off = sum.cut_off.or(cut);
    }
    sum
}

fn table(rows: &[Coverage]) -> Table {
    let of = "coverage";
    let columns = vec![
        column(of, "capture_file", 0, |row: &Coverage| Cell::Code(name(row).to_owned())),
        column(of, "start", 2, |row: &Coverage| row.start.map_or(Cell::Empty, Cell::Time)),
        column(of, "vantage", 1, |row: &Coverage| Cell::text(&row.vantage)).titled("Taken at"),
        column(of, "frames", 1, |row: &Coverage| {
            if row.format == LOAD_FORMAT { Cell::Empty } else { Cell::Count(row.frames) }
        })
        .titled("Packets"),
        column(of, "frames_dropped", 1, |row: &Coverage| Cell::count(row.frames_dropped))
            .titled("Dropped"),
        column(of, "events_lost", 2, |row: &Coverage| Cell::count(row.events_lost)),
        column(of, "gaps", 2, |row: &Coverage| Cell::some(row.gaps)),
        column(of, "connections", 1, |row: &Coverage| Cell::Count(row.connections)),
        column(of, "operations", 0, |row: &Coverage| Cell::Count(row.operations)),
        column(of, "operations_unanswered", 2, |row: &Coverage| {
            Cell::some(row.operations_unanswered)
        })
        .titled("Unanswered"),
        column(of, "cut_off", 1, |row: &Coverage| Cell::text(&row.cut_off)),
    ];
    Table::new("Recordings", "One line for each input.", rows, columns).cut(
        20,
        200,
        "select * from coverage",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inside_and_the_network_of_one_server_are_a_warning() {
        let row = |name: &str, vantage: Option<Vantage>, frames, start| Coverage {
            recording: name.to_owned(),
            vantage: vantage.map(|vantage| vantage.name().to_owned()),
            frames,
            operations: 9,
            start: Some(start),
            end: Some(start + 10),
            ..Coverage::default()
        };
        let inside = row("server.etl", Some(Vantage::Inside), 0, 100);
        let said = counted_twice(&[row("a.pcap", None, 50, 109), inside.clone()]).unwrap();
        assert!(
            said.starts_with("server.etl was recorded inside a server, and a.pcap on"),
            "{said}"
        );
        for other in [
            row("later.pcap", None, 50, 110),
            row("client.pcap", Some(Vantage::Client), 50, 100),
            row("server2.etl", Some(Vantage::Inside), 0, 100),
            row("load", None, 0, 100),
        ] {
            assert_eq!(counted_twice(&[other, inside.clone()]), None);
        }
    }

    #[test]
    fn packets_that_were_cut_too_short_may_hide_findings() {
        let said = |row: Coverage| {
            let report = Report { coverage: vec![row], ..Report::default() };
            format!("{:?}", notices(&report))
        };
        let row = Coverage { messages: 30, messages_cut: 2, ..Coverage::default() };
        assert_eq!(said(row.clone()), "[]", "the capture ends inside of a message");
        let cut = Coverage { frames_cut: 9, ..row };
        assert!(said(cut.clone()).contains("for 2 of 30 messages (snap length)"));
        let member = Coverage { messages_cut: 0, members_not_captured: 3, ..cut.clone() };
        assert!(said(member).contains("for 3 of 33 messages"));
        assert_eq!(said(Coverage { messages_cut: 0, ..cut }), "[]", "headers are enough");
    }

    #[test]
    fn what_was_forgotten_is_said_by_kind() {
        let row = Coverage { trees_forgotten: 34_464, handles_forgotten: 3, ..Coverage::default() };
        let said = forgotten(&row).unwrap();
        assert!(
            said.contains("34,464 trees, whose later operations have no share; 3 opens"),
            "{said}"
        );
        assert!(!said.contains("sessions"), "{said}");
        let few = Coverage { handles_forgotten: 3, ..Coverage::default() };
        assert_eq!(forgotten(&few), None);
        let report = Report { coverage: vec![row], ..Report::default() };
        assert_eq!(notices(&report).len(), 1);
    }

    #[test]
    fn encrypted_messages_have_a_reason_or_a_remedy() {
        let mut row = Coverage { messages_encrypted: 9, ..Coverage::default() };
        assert!(locked(&row).starts_with("give a password, a keytab, or keys of these sessions"));
        row.sessions_unlocked = 1;
        assert_eq!(locked(&row), "they belong to no session that was set up");
        row.sessions_without_logon = 2;
        assert_eq!(locked(&row), "the logon was not captured in full (sessions: 2)");
        row.sessions_wrong_secret = 1;
        row.sessions_without_secret = 3;
        assert_eq!(
            locked(&row),
            "the given secret does not match (sessions: 1); no secret was given for the account or \
             service (sessions: 3); the logon was not captured in full (sessions: 2)"
        );
        let report = Report { coverage: vec![row], ..Report::default() };
        assert_eq!(notices(&report).len(), 1);
    }
}
