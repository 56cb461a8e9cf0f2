//! Rows of connections and coverage: the facts about a connection that findings need, and notes about
//! what costs no time that could be measured.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_tables::tables::{Connection, Coverage};

use super::data::About;
use super::protocol_state::{Dialect, Negotiated};

/// Share of retransmitted segments above which a note is worthwhile.
const RETRANSMITTED_MIN: f64 = 0.001;
/// A negotiated maximum of at most this is small, bytes.
const SMALL_MAXIMUM: u64 = 64 << 10;
/// Most connections whose facts are kept; others are taken to allow what their dialect allows.
const CONNECTIONS_MAX: usize = 1_000_000;
/// From this many bytes on, it is worth mentioning that one connection carries them.
const MANY_BYTES: u64 = 64 << 20;
/// Fewest connections for a note that one of them carries nearly everything.
const CONNECTIONS_MIN: u64 = 4;

/// Most names in a sentence.
const NAMES_MAX: usize = 3;

/// Facts about a connection. Pairs are in the order: to the client (reads), to the server (writes).
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionFacts {
    /// Largest read and write that were negotiated.
    pub(super) blocks_max: [Option<u64>; 2],
    /// Shortest round trip between client and server, ns.
    pub(super) rtt_ns: Option<i64>,
    /// Largest receive window of the client, for reads, and of the server, for writes.
    pub(super) windows: [Option<u64>; 2],
    /// Whether client and server are on one machine.
    pub(super) is_one_machine: bool,
    /// Largest segment that both ends accept, bytes.
    pub(super) segment: Option<u64>,
    /// Retransmitted segments, and all segments.
    pub(super) retransmitted: [(u64, u64); 2],
    /// Time in which the stream stood still because of losses, ns.
    pub(super) stalled_ns: [u64; 2],
    /// Fewest and most credits that the client had.
    pub(super) credits: Option<(u64, u64)>,
    /// Capabilities of the server's Negotiate response.
    pub(super) server_capabilities: Option<u64>,
    /// MaxTransactSize, in SMB1 MaxBufferSize.
    pub(super) buffer_bytes: Option<u64>,
    /// Requests that a client of SMB1 may have outstanding.
    pub(super) max_outstanding: Option<u64>,
    /// Bytes in both directions.
    pub(super) bytes: u64,
    /// Whether client and server require signing, if known.
    pub(super) signing_required: [Option<bool>; 2],
    /// Whether the capture was taken at the server.
    pub(super) is_at_server: bool,
    /// Addresses of both ends.
    pub(super) client: Box<str>,
    pub(super) server: Box<str>,
    ports: (u64, u64),
    /// Its first and last packet, ns.
    pub(super) lasted: (i64, i64),
    /// Whether one end reset it, and whether that was the client.
    pub(super) reset_by_client: Option<bool>,
    /// Whether it was still open when the recording ended.
    pub(super) is_open: bool,
    /// Gaps in the recorded streams.
    pub(super) gaps: u64,
    /// How often the client closed its receive window.
    pub(super) client_windows_closed: u64,
    /// How often the server closed its receive window.
    pub(super) server_windows_closed: u64,
    /// Packets to the client and to the server.
    pub(super) packets: [u64; 2],
    pub(super) negotiated: Negotiated,
}

/// All connections.
#[derive(Default)]
pub(super) struct Connections {
    facts: HashMap<(u32, u64), ConnectionFacts, foldhash::fast::RandomState>,
    packets: u64,
    retransmissions: u64,
    gaps: u64,
    zero_windows: u64,
    /// Connections with a small negotiated maximum, and all that negotiated.
    small: (u64, u64),
    /// Connections with a small maximum although their dialect has large MTU.
    small_by_choice: u64,
    /// Connections with any bytes, the bytes of all, and those of the largest.
    carried: (u64, u64, u64),
    unread: u64,
    /// Sessions and trees that the decoder forgot for a limit.
    forgotten: u64,
    /// Messages that were captured in part, and members of compounds that were not captured.
    cut: (u64, u64),
}

impl Connections {
    pub(super) fn add(&mut self, recording: u32, row: &Connection) {
        let (to_client, to_server) = (row.bytes_to_client, row.bytes_to_server);
        if self.facts.len() < CONNECTIONS_MAX {
            let facts = ConnectionFacts {
                blocks_max: [row.max_read_bytes, row.max_write_bytes],
                rtt_ns: row
                    .server_rtt_ns
                    .zip(row.client_rtt_ns)
                    .map(|(server, client)| server.saturating_add(client)),
                windows: [row.client_window_max, row.server_window_max],
                is_one_machine: row.client == row.server,
                segment: row.client_mss.into_iter().chain(row.server_mss).min(),
                retransmitted: [
                    (row.retransmissions_to_client, row.packets_to_client),
                    (row.retransmissions_to_server, row.packets_to_server),
                ],
                stalled_ns: [row.recovery_ns_to_client, row.recovery_ns_to_server],
                credits: row.credits_min.map(|least| (least, row.credits_max)),
                server_capabilities: row.server_capabilities,
                buffer_bytes: row.max_transact_bytes,
                max_outstanding: row.max_outstanding,
                bytes: to_client.saturating_add(to_server),
                signing_required: [row.client_signing_required, row.signing_required],
                is_at_server: row.vantage.as_deref() == Some("server"),
                client: row.client.as_str().into(),
                server: row.server.as_str().into(),
                ports: (row.client_port, row.server_port),
                lasted: (row.start, row.end),
                reset_by_client: row.reset_by_client.filter(|_| row.end_reason == "reset"),
                is_open: row.end_reason == "end of the capture",
                gaps: row.gaps_to_client.saturating_add(row.gaps_to_server),
                client_windows_closed: row.zero_windows_to_server,
                server_windows_closed: row.zero_windows_to_client,
                packets: [row.packets_to_client, row.packets_to_server],
                negotiated: Negotiated::from_row(row),
            };
            self.facts.insert((recording, row.connection), facts);
        }
        let sums = [
            (&mut self.packets, [row.packets_to_client, row.packets_to_server]),
            (
                &mut self.retransmissions,
                [row.retransmissions_to_client, row.retransmissions_to_server],
            ),
            (&mut self.gaps, [row.gaps_to_client, row.gaps_to_server]),
            (&mut self.zero_windows, [row.zero_windows_to_client, row.zero_windows_to_server]),
        ];
        for (sum, [to_client, to_server]) in sums {
            *sum = sum.saturating_add(to_client).saturating_add(to_server);
        }
        if let (Some(read), Some(write)) = (row.max_read_bytes, row.max_write_bytes) {
            let is_small = read.min(write) <= SMALL_MAXIMUM;
            let dialect = row.dialect.as_deref().map(Dialect::from_name);
            self.small.0 += u64::from(is_small);
            self.small_by_choice += u64::from(is_small && dialect >= Some(Dialect::SMB21));
            self.small.1 += 1;
        }
        let bytes = to_client.saturating_add(to_server);
        let (count, all, most) = &mut self.carried;
        *count += u64::from(bytes > 0);
        *all = all.saturating_add(bytes);
        *most = (*most).max(bytes);
    }

    pub(super) fn add_coverage(&mut self, row: &Coverage) {
        let unread = row.messages_encrypted.saturating_sub(row.messages_decrypted);
        self.unread = self.unread.saturating_add(unread);
        let forgotten = row.sessions_forgotten.saturating_add(row.trees_forgotten);
        self.forgotten = self.forgotten.saturating_add(forgotten);
        // Without cut packets it is the capture that ends, or has gaps.
        if row.frames_cut == 0 {
            return;
        }
        let (messages, members) = &mut self.cut;
        *messages = messages.saturating_add(row.messages_cut);
        *members = members.saturating_add(row.members_not_captured);
    }

    pub(super) fn get(&self, connection: (u32, u64)) -> Option<&ConnectionFacts> {
        self.facts.get(&connection)
    }

    /// All connections that are known, in the order of their numbers.
    pub(super) fn all(&self) -> Vec<((u32, u64), &ConnectionFacts)> {
        let mut all: Vec<_> = self.facts.iter().map(|(key, facts)| (*key, facts)).collect();
        all.sort_unstable_by_key(|one| one.0);
        all
    }

    /// The name of a connection: its ends.
    pub(super) fn name(&self, connection: (u32, u64)) -> String {
        match self.get(connection) {
            Some(facts) => format!(
                "{} > {}",
                end(&facts.client, facts.ports.0),
                end(&facts.server, facts.ports.1)
            ),
            None => format!("connection {}", connection.1),
        }
    }

    /// The addresses of a connection's ends.
    pub(super) fn ends(&self, connection: (u32, u64)) -> Option<String> {
        self.get(connection).map(|facts| format!("{} - {}", facts.client, facts.server))
    }

    /// Segments that were retransmitted, and all segments.
    pub(super) fn retransmitted(&self) -> (u64, u64) {
        (self.retransmissions, self.packets)
    }

    /// Notes; `is_smb1` if SMB1 explains the small sizes.
    pub(super) fn notes(&self, is_smb1: bool, note: &mut impl FnMut(bool, About, String)) {
        let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        let (sent_again, packets) = self.retransmitted();
        note(
            sent_again as f64 > RETRANSMITTED_MIN * packets as f64 && sent_again > 1,
            About::Loss,
            format!(
                "{sent_again} of {packets} segments were retransmitted ({:.2} %): a link, a switch or a network card \
                 loses packets",
                percent(sent_again, packets)
            ),
        );
        note(
            self.zero_windows > 0,
            About::ZeroWindows,
            format!(
                "{} times a receiver closed its TCP window: its program did not read fast enough",
                self.zero_windows
            ),
        );
        note(
            self.small.0 > 0 && !is_smb1,
            About::SmallMaximum,
            format!(
                "{} of {} connections negotiated reads and writes of at most 64 KiB: {}",
                self.small.0,
                self.small.1,
                if self.small_by_choice < self.small.0 {
                    "large MTU needs dialect 2.1 or later"
                } else {
                    "the dialect allows more, but a side does not offer large MTU or limits the sizes (Samba smb2 max read \
                     and smb2 max write, Windows Set-SmbClientConfiguration -EnableLargeMtu)"
                }
            ),
        );
        let (count, all, most) = self.carried;
        note(
            count >= CONNECTIONS_MIN && most > MANY_BYTES && most as f64 > 0.9 * all as f64,
            About::OneConnection,
            format!(
                "one of {count} connections carries {:.0} % of the bytes: it has one CPU on each side and one \
                 TCP window",
                percent(most, all)
            ),
        );
        note(
            self.gaps > 0,
            About::Unseen,
            format!(
                "{} parts of the TCP streams are missing from the recording: some operations are not in it",
                self.gaps
            ),
        );
        let (messages, members) = self.cut;
        note(
            messages > 0 || members > 0,
            About::Unseen,
            format!(
                "the packets were cut too short for {messages} messages and {members} members of compounds: names, sizes \
                 and statuses in them are not known, so that findings may be missing; record at least 512 bytes of each \
                 packet"
            ),
        );
        note(
            self.forgotten > 0,
            About::Unseen,
            format!(
                "{} sessions and trees were forgotten before their end, because there were too many at once: later \
                 operations have no user or share; --memory with a larger size keeps more",
                self.forgotten
            ),
        );
        note(
            self.unread > 0,
            About::Unseen,
            format!(
                "{} messages are encrypted and were not decrypted: pass --password-file, --keytab or --keys",
                self.unread
            ),
        );
    }
}

/// The first names of a sentence, and how many more there are.
pub(super) fn list_names(all: &BTreeSet<String>) -> String {
    let shown: Vec<_> = all.iter().take(NAMES_MAX).map(String::as_str).collect();
    match all.len().saturating_sub(NAMES_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// An address and its port.
fn end(address: &str, port: u64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}
