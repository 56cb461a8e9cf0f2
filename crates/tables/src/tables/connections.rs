//! Table `connections`: TCP connections and RDMA queue pairs that carried SMB, with their round
//! trips, windows and losses.
//!
//! Columns for one direction end in `to_server` or `to_client`; columns for one side of the capture
//! point begin with `server_` or `client_`.

use crate::row::table;

table! {
    /// One TCP connection, or one pair of RDMA queue pairs, that carried SMB.
    Connection, "connections" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        connection: u64, None, Public, "Number of the connection, unique in its recording.";
        client: String, None, Machine, "The client's address.";
        client_port: u64, None, Public, "The client's TCP port; with RoCE the port in the connection's ConnectRequest, or the UDP source port of the client's packets if that was not captured.";
        server: String, None, Machine, "The server's address.";
        server_port: u64, None, Public, "The server's TCP port; with RoCE the port of the ConnectRequest's service, or 4791 (UDP) if that was not captured.";
        dialect: Option<String>, None, Public, "Negotiated dialect.";
        start as "started_at": i64, Time, Public, "First packet.";
        end as "ended_at": i64, Time, Public, "Last packet.";
        handshake_seen: bool, None, Public, "Whether the capture contains the TCP handshake (RoCE: ConnectRequest and ConnectReply); otherwise it began mid-stream.";
        end_reason: String, None, Public, "How it ended: fin (RoCE: DisconnectRequest), reset, idle (evicted), reused, or end of the capture.";
        vantage: Option<String>, None, Public, "Where the capture was taken: client, server or between.";
        vantage_reason: String, None, Public, "How the vantage was determined.";
        server_rtt_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the server: the minimum of handshake and data. Null if acknowledgements came with replies only.";
        server_rtt_handshake_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the server, from SYN to SYN-ACK.";
        server_rtt_data_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the server, from data to an acknowledgement without data: the minimum of all samples.";
        server_rtt_samples: u64, Count, Public, "Samples of server_rtt_data_ns.";
        client_rtt_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the client: the minimum of handshake and data. Null if acknowledgements came with requests only.";
        client_rtt_handshake_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the client, from SYN-ACK to its acknowledgement.";
        client_rtt_data_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the client, from data to an acknowledgement without data: the minimum of all samples.";
        client_rtt_samples: u64, Count, Public, "Samples of client_rtt_data_ns.";
        client_mss: Option<u64>, Bytes, Public, "Maximum segment size that the client announced.";
        server_mss: Option<u64>, Bytes, Public, "Maximum segment size that the server announced.";
        client_window_scale: Option<u64>, None, Public, "Window scale (a power of two) that the client announced.";
        server_window_scale: Option<u64>, None, Public, "Window scale that the server announced.";
        client_window_max: Option<u64>, Bytes, Public, "Largest receive window of the client; null if the window scale is unknown.";
        server_window_max: Option<u64>, Bytes, Public, "Largest receive window of the server; null if the window scale is unknown.";
        packets_to_server: u64, Count, Public, "Packets from the client.";
        packets_to_client: u64, Count, Public, "Packets from the server.";
        bytes_to_server: u64, Bytes, Public, "TCP payload from the client (RoCE: payload of its packets), without retransmissions.";
        bytes_to_client: u64, Bytes, Public, "TCP payload from the server (RoCE: payload of its packets), without retransmissions.";
        in_flight_max_to_server: u64, Bytes, Public, "Maximum of unacknowledged bytes from the client.";
        in_flight_max_to_client: u64, Bytes, Public, "Maximum of unacknowledged bytes from the server.";
        retransmissions_to_server: u64, Count, Public, "Retransmitted segments from the client.";
        retransmissions_to_client: u64, Count, Public, "Retransmitted segments from the server.";
        out_of_order_to_server: u64, Count, Public, "Segments from the client that arrived before an earlier one.";
        out_of_order_to_client: u64, Count, Public, "Segments from the server that arrived before an earlier one.";
        gaps_to_server: u64, Count, Public, "Gaps in the client's stream that were never filled.";
        gaps_to_client: u64, Count, Public, "Gaps in the server's stream that were never filled.";
        gap_bytes_to_server: u64, Bytes, Public, "Bytes of the gaps in the client's stream.";
        gap_bytes_to_client: u64, Bytes, Public, "Bytes of the gaps in the server's stream.";
        recovery_ns_to_server: u64, Nanoseconds, Public, "Time in which the client's stream stalled until lost segments were retransmitted.";
        recovery_ns_to_client: u64, Nanoseconds, Public, "Time in which the server's stream stalled until lost segments were retransmitted.";
        zero_windows_to_server: u64, Count, Public, "Times the client closed its receive window.";
        zero_windows_to_client: u64, Count, Public, "Times the server closed its receive window.";
        resets: u64, Count, Public, "RST segments.";
        reset_by_client: Option<bool>, None, Public, "Whether the first RST came from the client; null without one.";
        operations: u64, Count, Public, "Operations.";
        unanswered: u64, Count, Public, "Requests without a response.";
        outstanding_max: u64, Count, Public, "Maximum of operations in flight.";
        signed: u64, Count, Public, "Signed operations.";
        encrypted: u64, Count, Public, "Encrypted operations.";
        compressed: u64, Count, Public, "Compressed operations.";
        compounds: u64, Count, Public, "Compound chains.";
        breaks: u64, Count, Public, "Oplock and lease breaks that the server sent.";
        credits_max: u64, Count, Public, "Maximum of credits that the client held, as far as captured.";
        credits_min: Option<u64>, Count, Public, "Minimum of credits that the client held after its first request; null if the capture began mid-stream.";
        max_transact_bytes: Option<u64>, Bytes, Public, "MaxTransactSize (SMB1: MaxBufferSize).";
        max_outstanding: Option<u64>, Count, Public, "Requests that a client of SMB1 may have outstanding (MaxMpxCount); null for SMB2, where credits limit them.";
        max_read_bytes: Option<u64>, Bytes, Public, "MaxReadSize.";
        max_write_bytes: Option<u64>, Bytes, Public, "MaxWriteSize.";
        signing_required: Option<bool>, None, Public, "Whether the server requires signing.";
        signing_algorithm: Option<String>, None, Public, "Signing algorithm.";
        cipher: Option<String>, None, Public, "Negotiated cipher.";
        compression: Option<String>, None, Public, "Negotiated compression algorithms.";
        server_capabilities: Option<u64>, None, Public, "Capabilities in the server's Negotiate response.";
        client_capabilities: Option<u64>, None, Public, "Capabilities in the client's Negotiate request.";
        client_guid: Option<String>, None, Machine, "ClientGuid: the same on all channels of a client.";
        client_signing_required: Option<bool>, None, Public, "Whether the client requires signing: in its Negotiate request, or in a SessionSetup request to a server that does not.";
        server_interfaces: Option<String>, None, Machine, "Interfaces that the server offers for additional channels (FSCTL_QUERY_NETWORK_INTERFACE_INFO), if the client queried them on this connection: address, interface index, speed, RSS, RDMA.";
        guid: Option<String>, None, Public, "GUID by which events of Windows name the connection.";
        transport: Option<String>, None, Public, "What carried SMB: tcp, quic (encrypted, without operations), roce (RDMA over Converged Ethernet), iwarp (RDMA over TCP), or netbeui (NetBIOS frames; the ports are the numbers of the session).";
        queue_pair_client: Option<u64>, None, Public, "Number of the client's queue pair; null for TCP and iWARP, whose packets do not carry it.";
        queue_pair_server: Option<u64>, None, Public, "Number of the server's queue pair; null for TCP and iWARP.";
        rdma_reads: Option<u64>, Count, Public, "RDMA Read requests, without retransmissions: the server fetches what a client writes. Null for TCP.";
        rdma_writes: Option<u64>, Count, Public, "RDMA Write messages: the server places what a client reads. Null for TCP.";
        rdma_bytes: Option<u64>, Bytes, Public, "Bytes that RDMA Read responses and RDMA Writes carried, without retransmissions. Null for TCP.";
        naks: Option<u64>, Count, Public, "Negative acknowledgements (RoCE: NAK and RNR NAK; iWARP: Terminate messages). Null for TCP.";
    }
}

impl Connection {
    /// Whether the connection itself ended, not only the capture of it.
    pub fn has_ended(&self) -> bool {
        matches!(&*self.end_reason, "reset" | "fin" | "reused")
    }
}
