//! Table `net_tests`: what a path carries by TCP alone (`smbscope net send`), one row for each phase
//! and direction.
//!
//! Rates count payload at the receiver. What limited the sender comes from Linux' `tcp_info`
//! (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`; include/uapi/linux/tcp.h).

use crate::row::table;

table! {
    /// One direction of one phase of a test of the network.
    NetTest, "net_tests" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        phase: u64, None, Public, "Number of the phase, counted from 1. Rows with the same number ran at the same time.";
        tool: String, None, Public, "What was on the other side: smbscope (`net listen`) or iperf3.";
        direction: String, None, Public, "send: from the machine that ran `net send` to the other; receive: the reverse.";
        together: bool, None, Public, "Whether both directions ran at the same time.";
        sender: String, None, Machine, "Address of the machine that sent.";
        receiver: String, None, Machine, "Address of the machine that received.";
        same_machine: bool, None, Public, "Whether both ends were on one machine: CPU times of the machine then have both.";
        started_at: i64, Time, Public, "Start of the phase.";
        duration_ns: i64, Nanoseconds, Public, "From the first byte to the last at the receiver.";
        streams: u64, Count, Public, "TCP connections.";
        write_bytes: u64, Bytes, Public, "Length of one write of the sender.";
        pace_bits_per_second: Option<u64>, None, Public, "Requested rate of all streams; null without a limit.";
        bytes: u64, Bytes, Public, "Payload received.";
        bits_per_second: f64, None, Public, "Payload received, per second.";
        slowest_bits_per_second: f64, None, Public, "Rate of the slowest stream.";
        fastest_bits_per_second: f64, None, Public, "Rate of the fastest stream.";
        retransmissions: Option<u64>, Count, Public, "Segments that the sender's TCP retransmitted; null where the sender does not report it.";
        rtt_min_ns: Option<i64>, Nanoseconds, Public, "Smallest round trip that the sender's TCP measured under load.";
        rtt_mean_ns: Option<i64>, Nanoseconds, Public, "Mean of the smoothed round trips at the ends of the intervals.";
        rtt_samples: u64, Count, Public, "Intervals of that mean.";
        busy_ns: Option<i64>, Nanoseconds, Public, "Time in which the sender's TCP had data to send or to be acknowledged, sum of all streams.";
        rwnd_limited_ns: Option<i64>, Nanoseconds, Public, "Part of busy_ns in which the receive window was full.";
        sndbuf_limited_ns: Option<i64>, Nanoseconds, Public, "Part of busy_ns in which the send buffer was too small.";
        limit: String, None, Public, "What limited the rate: pace, sender, receiver, network or unknown.";
        limit_reason: String, None, Public, "How that was determined.";
        sender_cpu_ns: Option<i64>, Nanoseconds, Public, "CPU time of the sending process (user and kernel).";
        sender_user_ns: Option<i64>, Nanoseconds, Public, "Its part in user mode.";
        receiver_cpu_ns: Option<i64>, Nanoseconds, Public, "CPU time of the receiving process (user and kernel).";
        receiver_user_ns: Option<i64>, Nanoseconds, Public, "Its part in user mode.";
        sender_machine_cpu_ns: Option<i64>, Nanoseconds, Public, "CPU time of all of the sending machine, other programs included.";
        sender_softirq_ns: Option<i64>, Nanoseconds, Public, "Its part in interrupts and softirqs.";
        receiver_machine_cpu_ns: Option<i64>, Nanoseconds, Public, "CPU time of all of the receiving machine, other programs included.";
        receiver_softirq_ns: Option<i64>, Nanoseconds, Public, "Its part in interrupts and softirqs.";
        sender_mtu: Option<u64>, Bytes, Public, "MTU of the path as the sender's kernel knows it (IP_MTU).";
        receiver_mtu: Option<u64>, Bytes, Public, "MTU of the path as the receiver's kernel knows it.";
        sender_mss: Option<u64>, Bytes, Public, "Payload of a full segment of the sender (TCP_MAXSEG).";
        receiver_mss: Option<u64>, Bytes, Public, "Payload of a full segment of the receiver.";
    }
}
