//! What the recording says in one sentence, why in two more, and the six numbers next to it.
//!
//! A search for the capacity is answered by its number of users; another load run by whether the server
//! kept up; a capture by its most costly finding.

mod tiles;

pub(crate) use tiles::tiles;

use smbscope_analysis::explain::Diagnosis;
use smbscope_analysis::summary::{Net, Report};
use smbscope_tables::tables::Coverage;

use crate::answers::diagnosis::state::state_verdict;
use crate::answers::diagnosis::{logged, speed};
use crate::answers::load::state::load_verdict;
use crate::answers::recording::meta::Meta;
use crate::answers::recording::problem;
use crate::document::{Tone, Verdict};
use crate::value::format;

/// What a capture of name queries and announcements holds.
const NOT_SESSIONS: &str =
    "datagrams of NetBIOS (names, announcements, mailslots): these are not SMB sessions";
const IN_IPX: &str = "packets of SMB or NetBIOS sessions in IPX, which smbscope does not read: it reads SMB over TCP, \
                      NetBEUI, RDMA";

pub(crate) fn verdict(report: &Report, meta: &Meta) -> Verdict {
    match &report.load {
        Some(load) if !load.runs.is_empty() || !load.steps.is_empty() => {
            let channels = report.channels.as_ref().and_then(|channels| channels.sessions.first());
            load_verdict(load, channels, meta.diagnosis.as_ref())
        }
        _ => recording_verdict(report, meta.diagnosis.as_ref()),
    }
}

/// What the path carries, without SMB.
fn net_verdict(net: &Net) -> Verdict {
    let mut sentences = net.tests.iter().map(|test| {
        format!(
            "{} from {} to {}, {}",
            format::bits(test.bits_per_second),
            test.sender,
            test.receiver,
            crate::answers::recording::limit(test)
        )
    });
    let first = sentences.next().unwrap_or_else(|| "Only round trips were measured".to_owned());
    let mut reasons: Vec<_> = sentences.take(3).map(|more| format!("{more}.")).collect();
    reasons.extend(net.problems.iter().map(problem));
    let tone = if net.problems.is_empty() { Tone::Good } else { Tone::Watch };
    Verdict { tone, sentence: format!("Without SMB: {first}"), reasons }
}

fn recording_verdict(report: &Report, diagnosis: Option<&Diagnosis>) -> Verdict {
    let tally = &report.totals.tally;
    // Clients that cannot connect leave no operation.
    if let Some(diagnosis) = diagnosis
        && diagnosis.findings.iter().any(|found| found.details.is_noticed)
    {
        return state_verdict(diagnosis, &speed(diagnosis.p95_ns));
    }
    if let (0, Some(row)) = (tally.operations, report.logged.first()) {
        return Verdict {
            tone: Tone::Unknown,
            sentence: logged::times_of(row),
            reasons: vec![format!("{}: {}.", format::capitalized(row.side), row.remedy)],
        };
    }
    if let (0, Some(net)) = (tally.operations, &report.net) {
        return net_verdict(net);
    }
    if tally.operations == 0 {
        return Verdict {
            tone: Tone::Unknown,
            sentence: "There are no SMB operations here".to_owned(),
            reasons: vec![without_operations(report)],
        };
    }
    match diagnosis {
        Some(diagnosis) => state_verdict(diagnosis, &speed(diagnosis.p95_ns)),
        None => {
            let sentence = format::capitalized(&speed(tally.elapsed.p95_ns));
            Verdict { tone: Tone::Unknown, sentence, reasons: Vec::new() }
        }
    }
}

/// What a recording without operations holds, and what to do.
fn without_operations(report: &Report) -> String {
    let sum =
        |of: fn(&Coverage) -> u64| report.coverage.iter().map(of).fold(0, u64::saturating_add);
    let held = [
        (sum(|row| row.frames), "packets"),
        (sum(|row| row.frames_link_unknown), "of them of a link type that is not read"),
        (sum(|row| row.frames_not_tcp), "of them not TCP"),
        (sum(|row| row.frames_not_smb), "of other TCP connections"),
        (sum(|row| row.messages), "messages of SMB without an operation"),
        (sum(|row| row.frames_tunnelled), "in tunnels that stay closed"),
        (sum(|row| row.datagrams_not_sessions), NOT_SESSIONS),
        (sum(|row| row.frames_netbeui), "frames of NetBEUI connections without SMB1 in them"),
        (sum(|row| row.frames_ipx), IN_IPX),
        (sum(|row| row.quic_connections), "connections of SMB over QUIC, which is encrypted"),
        (sum(|row| row.quic_maybe_smb), "QUIC connections that may be SMB"),
    ];
    let words = held.iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> = words
        .map(|(count, what)| match (count, *what) {
            (1, "packets") => "1 packet".to_owned(),
            (count, what) => format!("{} {what}", format::count(*count)),
        })
        .collect();
    let counters = report.load.as_ref().map_or(0, |load| load.counters.len());
    if words.is_empty() && counters > 0 {
        let counters = format::count(counters as u64);
        return format!(
            "The input holds samples of {counters} counters. Give it together with a capture of the same time (smbscope report \
             packets.etl counters.csv), or ask about it: smbscope query INPUT \"select name, instance, avg(value) from counters \
             group by 1, 2\"."
        );
    }
    let is_log = |row: &Coverage| row.format.starts_with("Windows event");
    if words.is_empty() && !report.coverage.is_empty() && report.coverage.iter().all(is_log) {
        if let Some(words) = logged::without_trouble(&report.logged_other) {
            return words;
        }
        let notes: Vec<_> = report.coverage.iter().filter_map(|row| row.notes.as_deref()).collect();
        return format!(
            "The logs hold no events of SMB's server or client ({}). The script of `smbscope record --print-windows-script --what \
             smb --to 'S:\\temp'` records and exports those that smbscope reads.",
            notes.join(" ").trim_end_matches('.')
        );
    }
    if sum(|row| row.frames_link_unknown) > 0 {
        let notes: Vec<_> = report.coverage.iter().filter_map(|row| row.notes.as_deref()).collect();
        let held = format!("The input holds {}. {}", words.join(", "), notes.join(" "));
        return format!("{} Record on a network interface.", held.trim_end());
    }
    if sum(|row| row.quic_connections) > 0 && sum(|row| row.messages) == 0 {
        return format!(
            "The input holds {}. Operations inside QUIC are visible to the server alone: its events show them (smbscope record \
             --print-windows-script --what smb --to 'S:\\temp').",
            words.join(", ")
        );
    }
    let held = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    format!(
        "The input holds {held}. Record the server's port 445 while clients use it: tcpdump -i INTERFACE -s 512 -w \
         share.pcap port 445."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_of_datagrams_says_that_these_are_not_sessions() {
        let coverage = Coverage {
            frames: 9,
            frames_not_tcp: 9,
            datagrams_not_sessions: 7,
            ..Coverage::default()
        };
        let report = Report { coverage: vec![coverage], ..Report::default() };
        let Verdict { sentence, reasons, .. } = recording_verdict(&report, None);
        assert_eq!(sentence, "There are no SMB operations here");
        assert!(reasons[0].contains("7 datagrams of NetBIOS"), "{reasons:?}");
        assert!(reasons[0].contains("these are not SMB sessions"), "{reasons:?}");
        let coverage = Coverage { frames: 9, frames_ipx: 13, ..Coverage::default() };
        let report = Report { coverage: vec![coverage], ..Report::default() };
        let reasons = recording_verdict(&report, None).reasons;
        assert!(reasons[0].contains("13 packets of SMB or NetBIOS sessions in IPX"), "{reasons:?}");
        assert!(!reasons[0].contains("these are not SMB sessions"), "{reasons:?}");
        let coverage = Coverage { frames: 9, quic_connections: 2, ..Coverage::default() };
        let report = Report { coverage: vec![coverage], ..Report::default() };
        let reasons = recording_verdict(&report, None).reasons;
        assert!(reasons[0].contains("2 connections of SMB over QUIC"), "{reasons:?}");
    }
}
