//! Table `net_intervals`: each TCP stream of a test of the network (`smbscope net send`), interval by
//! interval, as Linux' `tcp_info` of the sending socket shows it (include/uapi/linux/tcp.h).

use crate::row::table;

table! {
    /// One stream in one interval.
    NetInterval, "net_intervals" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        phase: u64, None, Public, "Number of the phase (table net_tests).";
        direction: String, None, Public, "send: from the machine that ran `net send` to the other; receive: the reverse.";
        stream: u64, None, Public, "Number of the stream in its direction, counted from 0.";
        time: i64, Time, Public, "End of the interval. Of streams of the other machine: on the clock of this one, with an error of half a round trip.";
        duration_ns: i64, Nanoseconds, Public, "Length of the interval.";
        bytes: u64, Bytes, Public, "Payload acknowledged in the interval; received payload where the sender does not report to this machine.";
        bits_per_second: f64, None, Public, "The same, per second.";
        rtt_ns: Option<i64>, Nanoseconds, Public, "Smoothed round trip at the end of the interval.";
        rtt_min_ns: Option<i64>, Nanoseconds, Public, "Smallest round trip so far (the kernel forgets older ones after five minutes).";
        cwnd_bytes: Option<u64>, Bytes, Public, "Congestion window at the end of the interval.";
        peer_window_bytes: Option<u64>, Bytes, Public, "Receive window of the peer at the end of the interval; null before Linux 5.4.";
        in_flight_bytes: Option<u64>, Bytes, Public, "Unacknowledged segments at the end of the interval.";
        retransmissions: Option<u64>, Count, Public, "Segments retransmitted in the interval.";
        busy_ns: Option<i64>, Nanoseconds, Public, "Part of the interval in which TCP had data to send or to be acknowledged.";
        rwnd_limited_ns: Option<i64>, Nanoseconds, Public, "Part in which the receive window was full.";
        sndbuf_limited_ns: Option<i64>, Nanoseconds, Public, "Part in which the send buffer was too small.";
    }
}
