//! What a test found, as rows of the tables `net_tests`, `net_intervals` and `net_round_trips`.

use std::time::{Duration, SystemTime};

use smbscope_tables::tables::{NetInterval, NetRoundTrip, NetTest};

use super::cpu::CpuUse;
use super::limit::{Facts, judge, machine_share};
use super::message::{Interval, Moved, SideReport};
use super::round_trips::Measured;
use super::spec::{Direction, Spec};
use super::stream::nanoseconds;

/// The rows of a test.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// One for each phase and direction.
    pub tests: Vec<NetTest>,
    /// One for each stream and interval.
    pub intervals: Vec<NetInterval>,
    /// One for each kind and size.
    pub round_trips: Vec<NetRoundTrip>,
}

/// The two ends of a test.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) recording: String,
    pub(super) tool: &'static str,
    /// Address of this machine, and of the other.
    pub(super) local: String,
    pub(super) remote: String,
    pub(super) same_machine: bool,
}

/// One phase, before it becomes rows.
pub(super) struct Phase {
    pub(super) number: u64,
    pub(super) directions: Vec<Direction>,
    pub(super) started_at: i64,
    pub(super) own: SideReport,
    pub(super) peer: SideReport,
    pub(super) intervals: Vec<Interval>,
}

/// Now, in nanoseconds since 1970.
pub(super) fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, nanoseconds)
}

impl Ends {
    /// The rows of some intervals.
    pub(super) fn intervals(
        &self,
        phase: u64,
        started_at: i64,
        list: &[Interval],
    ) -> Vec<NetInterval> {
        let row = |one: &Interval| NetInterval {
            recording: self.recording.clone(),
            phase,
            direction: one.direction.name().to_owned(),
            stream: u64::from(one.stream),
            time: started_at.saturating_add(one.end_ns),
            duration_ns: one.duration_ns,
            bytes: one.bytes,
            bits_per_second: rate(one.bytes, one.duration_ns),
            rtt_ns: one.rtt_ns,
            rtt_min_ns: one.rtt_min_ns,
            cwnd_bytes: one.cwnd_bytes,
            peer_window_bytes: one.peer_window_bytes,
            in_flight_bytes: one.in_flight_bytes,
            retransmissions: one.retransmissions,
            busy_ns: one.busy_ns,
            rwnd_limited_ns: one.rwnd_limited_ns,
            sndbuf_limited_ns: one.sndbuf_limited_ns,
        };
        list.iter().map(row).collect()
    }

    /// The rows of round trips that began at `started_at`.
    pub(super) fn round_trips(&self, started_at: i64, list: &[Measured]) -> Vec<NetRoundTrip> {
        let known = list.iter().filter(|one| !one.times.is_empty());
        let row = |one: &Measured| NetRoundTrip {
            recording: self.recording.clone(),
            time: started_at.saturating_add(nanoseconds(one.started)),
            kind: one.kind.to_owned(),
            payload_bytes: u64::from(one.payload),
            request_bytes: u64::from(one.request),
            response_bytes: u64::from(one.response),
            samples: one.times.len() as u64,
            min_ns: one.percentile(0),
            mean_ns: one.mean(),
            p50_ns: one.percentile(50),
            p99_ns: one.percentile(99),
            max_ns: one.percentile(100),
        };
        known.map(row).collect()
    }

    /// The rows of a phase.
    pub(super) fn tests(&self, spec: &Spec, phase: &Phase) -> Vec<NetTest> {
        phase.directions.iter().map(|direction| self.test(spec, phase, *direction)).collect()
    }

    fn test(&self, spec: &Spec, phase: &Phase, direction: Direction) -> NetTest {
        let (local, remote) = (self.local.clone(), self.remote.clone());
        let (from, to, sender, receiver) = match direction {
            Direction::Send => (&phase.own, &phase.peer, local, remote),
            Direction::Receive => (&phase.peer, &phase.own, remote, local),
        };
        let received = &to.received;
        let bytes = received.iter().map(|one| one.bytes).sum();
        let first = received.iter().map(|one| one.first_ns).min().unwrap_or(0);
        let last = received.iter().map(|one| one.last_ns).max().unwrap_or(0);
        let duration_ns = (last - first).max(0);
        let each = received.iter().map(|one| rate(one.bytes, one.last_ns - one.first_ns));
        let seen: Vec<&Interval> =
            phase.intervals.iter().filter(|one| one.direction == direction).collect();
        let sum = |of: fn(&Interval) -> Option<i64>| {
            let known: Vec<i64> = seen.iter().filter_map(|one| of(one)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<i64>())
        };
        let retransmissions = sum(|one| i64::try_from(one.retransmissions?).ok());
        let retransmissions =
            retransmissions.and_then(|sum| u64::try_from(sum).ok()).or(from.retransmissions);
        let rtts: Vec<i64> =
            seen.iter().filter_map(|one| one.rtt_ns.filter(|ns| *ns > 0)).collect();
        // On one machine both sides share the CPUs.
        let own_ns = |one: &CpuUse, other: &CpuUse| {
            one.process_ns().saturating_add(if self.same_machine { other.process_ns() } else { 0 })
        };
        let facts = Facts {
            bits_per_second: rate(bytes, duration_ns),
            pace: spec.pace_bits_per_second,
            elapsed_ns: seen.iter().map(|one| one.duration_ns).sum(),
            busy_ns: sum(|one| one.busy_ns),
            rwnd_limited_ns: sum(|one| one.rwnd_limited_ns),
            sndbuf_limited_ns: sum(|one| one.sndbuf_limited_ns),
            retransmissions,
            sender_thread: busiest(&from.sent),
            receiver_thread: busiest(received),
            sender_machine: machine_share(&from.cpu, own_ns(&from.cpu, &to.cpu)),
            receiver_machine: machine_share(&to.cpu, own_ns(&to.cpu, &from.cpu)),
        };
        let (limit, limit_reason) = judge(&facts);
        let known = |cpu: &CpuUse, ns: i64| (*cpu != CpuUse::default()).then_some(ns);
        NetTest {
            recording: self.recording.clone(),
            phase: phase.number,
            tool: self.tool.to_owned(),
            direction: direction.name().to_owned(),
            together: phase.directions.len() > 1,
            sender,
            receiver,
            same_machine: self.same_machine,
            started_at: phase.started_at,
            duration_ns,
            streams: received.len() as u64,
            write_bytes: u64::from(spec.write_bytes(direction)),
            pace_bits_per_second: spec.pace_bits_per_second,
            bytes,
            bits_per_second: facts.bits_per_second,
            slowest_bits_per_second: each.clone().min_by(f64::total_cmp).unwrap_or(0.0),
            fastest_bits_per_second: each.max_by(f64::total_cmp).unwrap_or(0.0),
            retransmissions,
            rtt_min_ns: seen.iter().filter_map(|one| one.rtt_min_ns).min(),
            rtt_mean_ns: (!rtts.is_empty()).then(|| rtts.iter().sum::<i64>() / rtts.len() as i64),
            rtt_samples: rtts.len() as u64,
            busy_ns: facts.busy_ns,
            rwnd_limited_ns: facts.rwnd_limited_ns,
            sndbuf_limited_ns: facts.sndbuf_limited_ns,
            limit: limit.to_owned(),
            limit_reason,
            sender_cpu_ns: known(&from.cpu, from.cpu.process_ns()),
            sender_user_ns: known(&from.cpu, from.cpu.user_ns),
            receiver_cpu_ns: known(&to.cpu, to.cpu.process_ns()),
            receiver_user_ns: known(&to.cpu, to.cpu.user_ns),
            sender_machine_cpu_ns: from.cpu.machine_ns,
            sender_softirq_ns: from.cpu.softirq_ns,
            receiver_machine_cpu_ns: to.cpu.machine_ns,
            receiver_softirq_ns: to.cpu.softirq_ns,
            sender_mtu: from.mtu,
            receiver_mtu: to.mtu,
            sender_mss: from.mss,
            receiver_mss: to.mss,
        }
    }
}

/// The largest part of its time for which a stream's thread used a CPU.
fn busiest(streams: &[Moved]) -> Option<f64> {
    let shares = streams.iter().filter(|one| one.last_ns > 0 && one.cpu_ns > 0);
    shares.map(|one| one.cpu_ns as f64 / one.last_ns as f64).max_by(f64::total_cmp)
}

/// Bits per second.
pub(super) fn rate(bytes: u64, ns: i64) -> f64 {
    if ns <= 0 {
        return 0.0;
    }
    bytes as f64 * 8.0 / Duration::from_nanos(ns.unsigned_abs()).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_the_receiver_s_bytes_and_the_sender_s_tcp() {
        let moved = |stream, bytes, first_ns, last_ns| Moved {
            stream,
            bytes,
            first_ns,
            last_ns,
            cpu_ns: last_ns / 2,
        };
        let own = SideReport { sent: vec![moved(0, 900, 0, 90)], ..SideReport::default() };
        let peer = SideReport {
            received: vec![moved(0, 500, 10, 110), moved(1, 300, 20, 120)],
            cpu: CpuUse { user_ns: 3, system_ns: 4, ..CpuUse::default() },
            ..SideReport::default()
        };
        let interval =
            Interval { retransmissions: Some(2), rtt_ns: Some(5), ..Interval::default() };
        let other = Interval { direction: Direction::Receive, ..interval.clone() };
        let phase = Phase {
            number: 1,
            directions: vec![Direction::Send],
            started_at: 7,
            own,
            peer,
            intervals: vec![interval, other],
        };
        let ends = Ends {
            recording: "r".into(),
            tool: "smbscope",
            local: "a".into(),
            remote: "b".into(),
            same_machine: false,
        };
        let [test] = &ends.tests(&Spec::default(), &phase)[..] else { panic!() };
        assert_eq!((test.bytes, test.duration_ns, test.streams), (800, 110, 2));
        assert_eq!((test.sender.as_str(), test.receiver.as_str()), ("a", "b"));
        assert_eq!((test.retransmissions, test.rtt_samples), (Some(2), 1));
        // This side did not report CPU time, the other did.
        assert_eq!((test.sender_cpu_ns, test.receiver_cpu_ns), (None, Some(7)));
        assert!((test.fastest_bits_per_second - 500.0 * 8.0 / 100e-9).abs() < 1.0);
    }
}
