//! Table `waits`: what clients wait for before SMB and apart from it.

use crate::row::table;

table! {
    /// One wait other than an SMB operation: for a name, a connection, a ticket, an acknowledgement.
    Wait, "waits" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        client: String, None, Machine, "The address that waits.";
        server: String, None, Machine, "The address that it waits for: a file server, a name server (or a broadcast or multicast address), a domain controller.";
        port: u64, None, Public, "The port that it waits for.";
        connection: Option<u64>, None, Public, "The SMB connection, if it is a wait on one.";
        kind: String, None, Public, "What it waits for: name_lookup, connect (of TCP), ticket (Kerberos), directory (LDAP), web (the first answer of HTTP or HTTPS, as WebDAV asks), retransmission (data that are not acknowledged), acknowledgement (one that came late and that the next message waited for), path_mtu (a router asks for smaller packets).";
        protocol: String, None, Public, "Protocol: DNS, mDNS, LLMNR, NetBIOS, TCP, Kerberos, LDAP, HTTP, HTTPS, ICMP.";
        subject: Option<String>, None, Machine, "The name that is looked up, or the service that a ticket is for.";
        start as "started_at": i64, Time, Public, "First packet of the wait.";
        end as "ended_at": Option<i64>, Time, Public, "The answer, refusal or reset; null if none came.";
        last_attempt: i64, Time, Public, "The last packet with which the client asked.";
        attempts: u64, Count, Public, "Packets with which the client asked.";
        outcome: String, None, Public, "answered, failed (the answer says no), refused, reset, unreachable (a router or the host says so), abandoned (the client itself ended it) or none (no answer was recorded).";
        result: Option<String>, None, Public, "The result in an answer that says no, or what ICMP says.";
        answered_by: Option<String>, None, Machine, "The address of the answer.";
        size_bytes: Option<u64>, Bytes, Public, "Of retransmission: TCP payload of the segment that was retransmitted. Of path_mtu: the largest packet that passes.";
        sent_by_client: Option<bool>, None, Public, "Of retransmission and acknowledgement: whether the data were sent by the client of the connection.";
        first_frame: u64, None, Public, "Frame of the first packet, counted from 1.";
        last_frame: u64, None, Public, "Frame of the last packet.";
    }
}

impl Wait {
    /// How long it took as far as it was recorded, ns: up to the answer, or to the last attempt.
    pub fn waited_ns(&self) -> i64 {
        self.end.unwrap_or(self.last_attempt).saturating_sub(self.start).max(0)
    }

    /// Whether it ended without success.
    pub fn is_unanswered(&self) -> bool {
        self.outcome != "answered"
    }
}
