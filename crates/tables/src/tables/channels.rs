//! Table `channels`: what each connection of a session carried in each interval, and since when.
//!
//! Rows add up: an interval in which nothing happened has no row, and an operation that ends long
//! after an interval can add another row of it. [`crate::channels`] makes the rows.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One connection of a session in one interval.
    Channel, "channels" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        session_id: Option<u64>, None, Public, "The session; null if no session was seen on the connection.";
        connection: u64, None, Public, "Number of the connection, unique in its recording.";
        channel: Option<u64>, None, Public, "Number of the connection among those of its session, 0 for the first; null if it was not bound.";
        client: Arc<str>, None, Machine, "The client's address.";
        client_port: u64, None, Public, "The client's port.";
        server: Arc<str>, None, Machine, "The server's address.";
        server_port: u64, None, Public, "The server's port.";
        client_interface: Option<Arc<str>>, None, Machine, "The client's interface, if known.";
        server_interface: Option<u64>, None, Public, "Number of the server's interface (FSCTL_QUERY_NETWORK_INTERFACE_INFO), if known.";
        transport: Option<Cow<'static, str>>, None, Public, "What carried SMB, as in connections: tcp, quic, roce or iwarp.";
        opened_at: Option<i64>, Time, Public, "When it was opened (first packet); null if it was open before the recording.";
        bound_at: Option<i64>, Time, Public, "End of the SessionSetup that logged on (first channel) or bound it (other channels); null before that, and if it was not recorded.";
        bind_status: Option<Cow<'static, str>>, None, Public, "Status with which the server refused to bind it to the session; null if it did not.";
        first_byte_at: Option<i64>, Time, Public, "Beginning of the first Read response or Write request with payload; null before it.";
        interval_start: i64, Time, Public, "Beginning of the interval; a multiple of interval_ns.";
        interval_ns: u64, Nanoseconds, Public, "Length of the interval.";
        bytes_written: u64, Bytes, Public, "Payload of Writes; that of a long request is spread evenly over its transfer.";
        bytes_read: u64, Bytes, Public, "Payload of Reads; that of a long response is spread evenly over its transfer.";
        operations: u64, Count, Public, "Reads and Writes that ended.";
        outstanding_mean: f64, None, Public, "Reads and Writes in flight, mean over the interval.";
        transferring_mean: f64, None, Public, "Reads and Writes whose payload was on its way, from its first to its last byte, mean over the interval.";
        outstanding_max: Option<u64>, Count, Public, "Most operations in flight when a Read or Write began, itself included.";
        bytes_in_flight_max: Option<u64>, Bytes, Public, "Most unacknowledged bytes of TCP in either direction; of a connection with several sessions in the rows of the first.";
        round_trip_ns: Option<i64>, Nanoseconds, Public, "Smallest round trip of TCP that was measured in the interval, to the far side of the capture point or as the sender's system reports it.";
        retransmissions: Option<u64>, Count, Public, "Retransmitted segments, both directions.";
        phase: Option<Cow<'static, str>>, None, Public, "Phase of the load run that moves bulk data: preparing (files that are read are written first), measured or verifying; null in captures. The first and the last interval of a phase have a row for each phase.";
        phase_at: Option<i64>, Time, Public, "When that phase began.";
        lost_at: Option<i64>, Time, Public, "When the connection was lost; null before that, and if it was not.";
        lost_reason: Option<Cow<'static, str>>, None, Public, "Why it was lost: what the load generator says, or in captures reset, fin or silent (the server sent nothing more).";
        repeated: Option<u64>, Count, Public, "Requests that were repeated on other channels because it was lost; null if it was not, and in captures.";
    }
}
