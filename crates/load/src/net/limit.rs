//! What limited a rate: the pace, the sender, the receiver or the network.
//!
//! Linux counts for each connection how long it had something to send or unacknowledged (busy), and
//! which part of that it waited for the receive window or for the send buffer; the rest it waited for
//! the congestion window, which is the network (net/ipv4/tcp_output.c, `tcp_chrono_start`). A CPU without
//! idle time comes first, because TCP's times only follow from it.

use super::cpu::CpuUse;

/// The pace was the limit at this share of it or more.
const PACE_SHARE: f64 = 0.95;
/// A CPU, or all of them, was the limit when busy for this share or more.
const CPU_SHARE: f64 = 0.9;
const MACHINE_SHARE: f64 = 0.95;
/// Part of a busy machine's CPU time that the test itself must have used: other programs may take all idle
/// time of a machine without slowing down a test that needs little.
const OWN_SHARE: f64 = 0.5;
/// A part of the time below which the sender had nothing to send.
const BUSY_SHARE: f64 = 0.9;

/// What was measured of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) bits_per_second: f64,
    pub(super) pace: Option<u64>,
    /// Time of the streams, all together.
    pub(super) elapsed_ns: i64,
    pub(super) busy_ns: Option<i64>,
    pub(super) rwnd_limited_ns: Option<i64>,
    pub(super) sndbuf_limited_ns: Option<i64>,
    pub(super) retransmissions: Option<u64>,
    /// Busiest thread of the sender and of the receiver, as a part of its time.
    pub(super) sender_thread: Option<f64>,
    pub(super) receiver_thread: Option<f64>,
    /// Busy part of all CPUs of each machine, if the test used most of it.
    pub(super) sender_machine: Option<f64>,
    pub(super) receiver_machine: Option<f64>,
}

/// Busy part of all CPUs of a machine on which the test needed `own_ns`; `None` if other programs took
/// most of it.
pub(super) fn machine_share(cpu: &CpuUse, own_ns: i64) -> Option<f64> {
    let share = cpu.machine_share()?;
    (own_ns as f64 >= OWN_SHARE * cpu.machine_ns? as f64).then_some(share)
}

/// The limit, and why.
pub(super) fn judge(facts: &Facts) -> (&'static str, String) {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if let Some(pace) = facts.pace
        && facts.bits_per_second >= PACE_SHARE * pace as f64
    {
        let share = facts.bits_per_second / pace as f64;
        return ("pace", format!("the rate is {} of the requested one", percent(share)));
    }
    let threads = [("sender", facts.sender_thread), ("receiver", facts.receiver_thread)];
    let busiest = |list: [(&'static str, Option<f64>); 2], least: f64| {
        let known = list.into_iter().filter_map(|(side, share)| Some((side, share?)));
        known.filter(|(_, share)| *share >= least).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    if let Some((side, share)) = busiest(threads, CPU_SHARE) {
        return (side, format!("a stream's thread there used {} of a CPU", percent(share)));
    }
    let machines = [("sender", facts.sender_machine), ("receiver", facts.receiver_machine)];
    if let Some((side, share)) = busiest(machines, MACHINE_SHARE) {
        return (side, format!("all CPUs of that machine were {} busy", percent(share)));
    }
    let (Some(busy), Some(rwnd), Some(sndbuf)) =
        (facts.busy_ns, facts.rwnd_limited_ns, facts.sndbuf_limited_ns)
    else {
        return ("unknown", "the sender's TCP does not report to this machine".to_owned());
    };
    let share = |ns: i64, of: i64| ns as f64 / of.max(1) as f64;
    let busy_share = share(busy, facts.elapsed_ns);
    if busy_share < BUSY_SHARE {
        let idle = percent((1.0 - busy_share).max(0.0));
        return ("sender", format!("TCP had nothing to send for {idle} of the time"));
    }
    let network = busy.saturating_sub(rwnd).saturating_sub(sndbuf).max(0);
    let parts = [("network", network), ("receiver", rwnd), ("sender", sndbuf)];
    let (side, most) = parts.into_iter().max_by_key(|(_, ns)| *ns).unwrap_or(("unknown", 0));
    let part = percent(share(most, busy));
    let reason = match side {
        "receiver" => format!("the receive window was full for {part} of the time"),
        "sender" => format!("the send buffer was too small for {part} of the time"),
        _ => match facts.retransmissions.unwrap_or(0) {
            0 => format!(
                "the congestion window held data back for {part} of the time; no segment was retransmitted"
            ),
            n => format!(
                "the congestion window held data back for {part} of the time; {n} segments were retransmitted"
            ),
        },
    };
    (side, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            bits_per_second: 1e9,
            elapsed_ns: 100,
            busy_ns: Some(100),
            rwnd_limited_ns: Some(10),
            sndbuf_limited_ns: Some(10),
            retransmissions: Some(3),
            sender_thread: Some(0.3),
            ..Facts::default()
        }
    }

    #[test]
    fn each_limit_has_its_evidence() {
        let limit = |change: fn(&mut Facts)| {
            let mut facts = facts();
            change(&mut facts);
            judge(&facts).0
        };
        assert_eq!(limit(|_| {}), "network");
        assert_eq!(limit(|it| it.rwnd_limited_ns = Some(60)), "receiver");
        assert_eq!(limit(|it| it.sndbuf_limited_ns = Some(60)), "sender");
        assert_eq!(limit(|it| it.busy_ns = Some(80)), "sender");
        assert_eq!(limit(|it| it.pace = Some(1_010_000_000)), "pace");
        assert_eq!(limit(|it| it.pace = Some(2_000_000_000)), "network");
        assert_eq!(limit(|it| it.receiver_thread = Some(0.97)), "receiver");
        assert_eq!(limit(|it| it.sender_machine = Some(0.99)), "sender");
        assert_eq!(limit(|it| it.busy_ns = None), "unknown");
    }

    #[test]
    fn a_machine_that_others_keep_busy_is_not_the_limit() {
        let cpu = CpuUse { machine_ns: Some(100), idle_ns: Some(0), ..CpuUse::default() };
        assert_eq!(machine_share(&cpu, 60), Some(1.0));
        assert_eq!(machine_share(&cpu, 40), None);
        assert_eq!(machine_share(&CpuUse::default(), 40), None);
    }

    #[test]
    fn the_reason_has_the_numbers() {
        assert!(judge(&facts()).1.contains("80 %"), "{}", judge(&facts()).1);
        assert!(judge(&facts()).1.contains("3 segments"));
    }
}
