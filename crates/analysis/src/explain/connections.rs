//! What rows of connections and coverage tell: the facts that findings need of a connection, and notes on
//! what has no time of its own.

use hashbrown::HashMap;
use smbscope_tables::tables::{Connection, Coverage};
use smbscope_wire::smb2::negotiate::Capabilities;

use super::data::About;

/// So many segments lost that it is worth a note.
const LOST: f64 = 0.001;
/// Reads and writes of at most this are small for a server, bytes.
const SMALL_MAXIMUM: u64 = 64 << 10;
/// Connections whose facts are known; of others it is taken that they allow what their dialect does.
const CONNECTIONS_MAX: usize = 1_000_000;
const MULTI_CHANNEL: u64 = Capabilities::MULTI_CHANNEL.0 as u64;
/// So many bytes that a second connection would be worth its setup.
const MANY_BYTES: u64 = 64 << 20;
/// One of so many connections stands out.
const MANY_CONNECTIONS: u64 = 4;

/// What findings need of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Largest read and write.
    pub(super) most: [Option<u64>; 2],
    /// Least round trip between client and server, ns.
    pub(super) rtt_ns: Option<i64>,
    /// Largest receive window for what is read (the client's), and for what is written.
    pub(super) windows: [Option<u64>; 2],
    /// Whether no line is between client and server.
    pub(super) is_one_machine: bool,
    /// Largest segment of both, bytes.
    pub(super) segment: Option<u64>,
    /// Segments sent again, and all, to the client and to the server.
    pub(super) sent: [(u64, u64); 2],
    /// Time in which that way stood still for what was lost, ns.
    pub(super) stood_ns: [u64; 2],
    /// Fewest and most credits that the client held.
    pub(super) credits: Option<(u64, u64)>,
    /// Addresses and ports of both ends.
    name: Box<str>,
}

/// A client, as far as it tells who it is, and the server.
type Pair = (u32, String, String);

/// Connections of one client to one server.
#[derive(Clone, Copy, Default)]
struct Channels {
    connections: u64,
    bytes: u64,
    are_offered: bool,
}

/// All of them.
#[derive(Default)]
pub(super) struct Connections {
    known: HashMap<(u32, u64), Known, foldhash::fast::RandomState>,
    pairs: HashMap<Pair, Channels, foldhash::fast::RandomState>,
    packets: u64,
    retransmissions: u64,
    gaps: u64,
    zero_windows: u64,
    /// Connections that negotiated so little, of so many that negotiated.
    small: (u64, u64),
    /// Connections that carried something, all bytes, and the most of one.
    carried: (u64, u64, u64),
    unread: u64,
}

impl Connections {
    pub(super) fn add(&mut self, recording: u32, row: &Connection) {
        let (to_client, to_server) = (row.bytes_to_client, row.bytes_to_server);
        if self.known.len() < CONNECTIONS_MAX {
            let known = Known {
                most: [row.max_read_bytes, row.max_write_bytes],
                rtt_ns: row
                    .server_rtt_ns
                    .zip(row.client_rtt_ns)
                    .map(|(server, client)| server.saturating_add(client)),
                windows: [row.client_window_max, row.server_window_max],
                is_one_machine: row.client == row.server,
                segment: row.client_mss.into_iter().chain(row.server_mss).min(),
                sent: [
                    (row.retransmissions_to_client, row.packets_to_client),
                    (row.retransmissions_to_server, row.packets_to_server),
                ],
                stood_ns: [row.recovery_ns_to_client, row.recovery_ns_to_server],
                credits: row.credits_min.map(|least| (least, row.credits_max)),
                name: format!(
                    "{} > {}",
                    end(&row.client, row.client_port),
                    end(&row.server, row.server_port)
                )
                .into(),
            };
            self.known.insert((recording, row.connection), known);
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
            self.small.0 += u64::from(read.min(write) <= SMALL_MAXIMUM);
            self.small.1 += 1;
        }
        let bytes = to_client.saturating_add(to_server);
        let (count, all, most) = &mut self.carried;
        *count += u64::from(bytes > 0);
        *all = all.saturating_add(bytes);
        *most = (*most).max(bytes);
        if self.pairs.len() < CONNECTIONS_MAX {
            let client = row.client_guid.as_ref().unwrap_or(&row.client).clone();
            let pair = self.pairs.entry((recording, client, row.server.clone())).or_default();
            pair.connections += 1;
            pair.bytes = pair.bytes.saturating_add(bytes);
            let both = row.server_capabilities.zip(row.client_capabilities);
            pair.are_offered |=
                both.is_some_and(|(server, client)| server & client & MULTI_CHANNEL != 0);
        }
    }

    pub(super) fn add_coverage(&mut self, row: &Coverage) {
        let unread = row.messages_encrypted.saturating_sub(row.messages_decrypted);
        self.unread = self.unread.saturating_add(unread);
    }

    pub(super) fn get(&self, connection: (u32, u64)) -> Option<&Known> {
        self.known.get(&connection)
    }

    /// A connection by its ends.
    pub(super) fn name(&self, connection: (u32, u64)) -> String {
        match self.get(connection) {
            Some(known) => known.name.to_string(),
            None => format!("connection {}", connection.1),
        }
    }

    /// Segments that were sent again, of all.
    pub(super) fn lost(&self) -> (u64, u64) {
        (self.retransmissions, self.packets)
    }

    /// What is worth knowing; `is_smb1` where that explains the small sizes.
    pub(super) fn notes(&self, is_smb1: bool, note: &mut impl FnMut(bool, About, String)) {
        let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        let (sent_again, packets) = self.lost();
        note(
            sent_again as f64 > LOST * packets as f64 && sent_again > 1,
            About::Loss,
            format!(
                "{sent_again} segments of {packets} were sent again ({:.2} %): the line, a switch or a network \
                 card loses packets",
                percent(sent_again, packets)
            ),
        );
        note(
            self.zero_windows > 0,
            About::ZeroWindows,
            format!(
                "{} times a receiver said that it can take no more: its program did not read",
                self.zero_windows
            ),
        );
        note(
            self.small.0 > 0 && !is_smb1,
            About::SmallMaximum,
            format!(
                "{} of {} connections agreed on reads and writes of 64 KiB at most: large MTU needs dialect 2.1",
                self.small.0, self.small.1
            ),
        );
        let is_unused =
            |pair: &&Channels| pair.are_offered && pair.connections == 1 && pair.bytes > MANY_BYTES;
        let unused = self.pairs.values().filter(is_unused).count();
        note(
            unused > 0,
            About::MultichannelUnused,
            format!(
                "{unused} of {} clients and their servers both offer multichannel, and yet all goes over one \
                 connection: it needs several network cards, or one with RSS on both sides",
                self.pairs.len()
            ),
        );
        let (count, all, most) = self.carried;
        note(
            count >= MANY_CONNECTIONS && most > MANY_BYTES && most as f64 > 0.9 * all as f64,
            About::OneConnection,
            format!(
                "one of {count} connections carries {:.0} % of the bytes: one processor on each side, and one TCP \
                 window, serve it",
                percent(most, all)
            ),
        );
        note(
            self.gaps > 0,
            About::Unseen,
            format!(
                "{} pieces of the streams are missing in the recording: some operations were not seen",
                self.gaps
            ),
        );
        note(
            self.unread > 0,
            About::Unseen,
            format!(
                "{} messages are encrypted and were not read: what they do is not known (--keys)",
                self.unread
            ),
        );
    }
}

/// An address and its port.
fn end(address: &str, port: u64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}
