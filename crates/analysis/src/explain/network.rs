//! The network without SMB (`smbscope net`) as evidence: whether the path or SMB is the limit.
//!
//! Owns the note about it, and what it says about findings that blame the path. The comparison itself is
//! [`crate::net`].

use smbscope_findings::Figure;
use smbscope_tables::tables::{Channel, Connection, Counter, NetRoundTrip, NetTest};

use super::data::{Finding, FindingKind};
use super::operation::{Act, Operation};
use crate::net::{Moved, NetTally, SmbRatio};
use crate::rows::bins::{Bin as _, Bins};

/// Windows of SMB's rate that are kept.
const BINS_MAX: usize = 4_096;

/// Tests of the path, and SMB's bytes over time.
pub(super) struct Network {
    tally: NetTally,
    moved: Bins<Moved>,
    range: Option<(i64, i64)>,
}

impl Default for Network {
    fn default() -> Network {
        Network { tally: NetTally::default(), moved: Bins::new(BINS_MAX), range: None }
    }
}

impl Network {
    pub(super) fn tests(&mut self, rows: &[NetTest]) {
        self.tally.tests(rows);
    }

    pub(super) fn round_trips(&mut self, rows: &[NetRoundTrip]) {
        self.tally.round_trips(rows);
    }

    pub(super) fn connections(&mut self, rows: &[Connection]) {
        self.tally.connections(rows);
    }

    pub(super) fn channels(&mut self, rows: &[Channel]) {
        self.tally.channels(rows);
    }

    pub(super) fn counters(&mut self, rows: &[Counter]) {
        self.tally.counters(rows);
    }

    pub(super) fn see(&mut self, op: &Operation) {
        let (Some(start), true) = (op.start, op.bytes > 0) else { return };
        let end = start.saturating_add(op.elapsed_ns.max(0));
        let moved = match op.act {
            Act::Read => Moved { read_bytes: op.bytes, written_bytes: 0 },
            Act::Write => Moved { read_bytes: 0, written_bytes: op.bytes },
            _ => return,
        };
        self.moved.at(end).absorb(&moved);
        let (first, last) = self.range.unwrap_or((end, end));
        self.range = Some((first.min(end), last.max(end)));
    }

    /// SMB next to the network, by direction; empty without a test or without payload.
    pub(super) fn finish(self) -> Vec<SmbRatio> {
        if !self.tally.has_tests() || self.range.is_none() {
            return Vec::new();
        }
        let (width_ns, bins) = self.moved.into_bins();
        self.tally.finish(width_ns, &bins).map_or_else(Vec::new, |net| net.ratios)
    }
}

/// Which of the two is the limit, in one sentence.
pub(super) fn sentence(row: &SmbRatio, is_signed: bool) -> String {
    let verb = if row.operation == "write" { "writes" } else { "reads" };
    let [smb, raw] = [row.smb_bits_per_second, row.raw_bits_per_second]
        .map(|bits| format!("{:.2} Gbit/s", bits / 1e9));
    let what = format!(
        "SMB {verb} {smb}, TCP alone moves {raw} {} (smbscope net; SMB has {:.0} %)",
        row.over(),
        100.0 * row.ratio
    );
    match &*row.limit {
        "smb" if is_signed => format!(
            "SMB, not the network: {what}; most messages are signed or encrypted: see what that costs with \
             `smbscope predict INPUT --change signing=off` or encryption=off, then look at the findings"
        ),
        "smb" => format!(
            "SMB, not the network: {what}; look at the findings: requests in flight, server, storage"
        ),
        "network" => {
            format!("the network, not SMB: {what}; faster storage or another server would not help")
        }
        side @ ("sender" | "receiver") => format!(
            "a machine, not SMB and not the network: {what}, and the {side} limited TCP alone too: look at its \
             CPUs and its adapter (smbscope record --cpu, smbscope plan cores)"
        ),
        _ => format!(
            "{what}; the test was paced, so that it does not show the limit: repeat it without --pace"
        ),
    }
}

/// Adds what the test of the path says to a finding that blames the path.
pub(super) fn judge(finding: &mut Finding, ratios: &[SmbRatio]) {
    if !matches!(finding.kind, FindingKind::BandwidthLimited | FindingKind::WindowLimited) {
        return;
    }
    let known = ratios.iter().filter(|row| row.limit == "smb" || row.limit == "network");
    let Some(row) = known.max_by(|a, b| a.ratio.total_cmp(&b.ratio)) else { return };
    let percent = 100.0 * row.ratio;
    let words = match &*row.limit {
        "network" => format!("SMB has {percent:.0} % of what TCP alone moves over the path"),
        _ => format!("TCP alone moves more over the path: SMB has {percent:.0} % of it"),
    };
    finding.because = format!("{words}; {}", finding.because);
    let phrase = "{} of what TCP alone moves";
    finding.figures.push(Figure::new("share_of_raw", row.ratio, "share", phrase));
}
