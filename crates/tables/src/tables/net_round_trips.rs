//! Table `net_round_trips`: round trips of messages as large as SMB's over an idle TCP connection
//! (`smbscope net send`). Sizes of headers are those of MS-SMB2 sections 2.2.1 and 2.2.19 to 2.2.22.

use crate::row::table;

table! {
    /// Round trips of one kind and size.
    NetRoundTrip, "net_round_trips" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        time: i64, Time, Public, "Start of the measurement.";
        kind: String, None, Public, "echo: small messages both ways; read: a small request and a response with payload; write: the reverse.";
        payload_bytes: u64, Bytes, Public, "Payload, as of an SMB Read or Write.";
        request_bytes: u64, Bytes, Public, "Length of the request.";
        response_bytes: u64, Bytes, Public, "Length of the response.";
        samples: u64, Count, Public, "Round trips.";
        min_ns: i64, Nanoseconds, Public, "Smallest.";
        mean_ns: i64, Nanoseconds, Public, "Mean.";
        p50_ns: i64, Nanoseconds, Public, "Median (nearest rank).";
        p99_ns: i64, Nanoseconds, Public, "99th percentile (nearest rank).";
        max_ns: i64, Nanoseconds, Public, "Largest.";
    }
}
