//! What an SMB1 server's Negotiate response allows for one read or write, and whether the client uses it
//! (MS-CIFS sections 2.2.4.52.2 and 3.2.4.14; MS-SMB section 2.2.4.5.2.1).
//!
//! With CAP_LARGE_READX and CAP_LARGE_WRITEX a block can have up to 64 KiB; without them, the whole message
//! must fit into MaxBufferSize. The large forms are not used on signed connections.

use std::collections::BTreeSet;

use smbscope_findings::Remedy;
use smbscope_wire::smb1::negotiate::Capabilities;

use super::connections::{ConnectionFacts, list_names};
use super::data::Finding;

/// A message may be longer than its block by this much.
const HEADERS_BYTES: f64 = 128.0;

const CLIENT: (&str, &str) = (
    "client",
    "a client or driver that uses SMB2, or at least what the server offers (CAP_LARGE_READX, \
             CAP_LARGE_WRITEX, MaxBufferSize)",
);
const SAMBA: (&str, &str) = (
    "Samba",
    "server min protocol = SMB2_02; until then large readwrite = yes and max xmit = 65535",
);
const WINDOWS: (&str, &str) = (
    "Windows",
    "SMB2 on both sides; until then SizReqBuf = 16644 in \
             HKLM\\SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\Parameters",
);

/// Connections of one kind.
#[derive(Default)]
struct Group {
    operations: u64,
    clients: BTreeSet<String>,
    servers: BTreeSet<String>,
    /// This and the fields that follow describe the last connection.
    is_large: bool,
    has_raw_mode: bool,
    is_signed: bool,
    buffer_bytes: Option<u64>,
}

/// What servers offer to the clients of one direction.
#[derive(Default)]
pub(super) struct Smb1Offers {
    /// The server offers larger blocks than the client uses.
    unused: Group,
    /// The block is the largest that the server allows.
    largest: Group,
}

/// Its name and its bit, for reads and for writes.
const LARGE: [(&str, Capabilities); 2] = [
    ("CAP_LARGE_READX", Capabilities::LARGE_READ_X),
    ("CAP_LARGE_WRITEX", Capabilities::LARGE_WRITE_X),
];

impl Smb1Offers {
    /// Adds the small blocks of a connection, by their mean and number.
    pub(super) fn add(
        &mut self,
        direction: usize,
        (block_bytes, operations): (f64, u64),
        is_signed: bool,
        facts: &ConnectionFacts,
    ) {
        let Some(capabilities) = facts.server_capabilities.filter(|_| operations > 0) else {
            return;
        };
        let (_, large) = LARGE[direction];
        let is_large = !is_signed && Capabilities(capabilities as u32).has(large);
        let fits = facts.buffer_bytes.map(|most| block_bytes + HEADERS_BYTES < most as f64);
        let group = match (is_large, fits) {
            (true, _) => &mut self.unused,
            (false, Some(false)) => &mut self.largest,
            // A reply must fit into the client's buffer, which the server does not choose.
            (false, Some(true)) if direction == 1 => &mut self.unused,
            (false, _) => return,
        };
        group.operations += operations;
        group.clients.insert(facts.client.to_string());
        group.servers.insert(facts.server.to_string());
        group.buffer_bytes = facts.buffer_bytes;
        group.has_raw_mode = Capabilities(capabilities as u32).has(Capabilities::RAW_MODE);
        (group.is_large, group.is_signed) = (is_large, is_signed);
    }

    /// Adds to a finding whose choice the blocks are.
    pub(super) fn describe(&self, direction: usize, finding: &mut Finding) {
        let (name, _) = LARGE[direction];
        let buffer = |group: &Group| match group.buffer_bytes {
            Some(bytes) => format!("MaxBufferSize {bytes} bytes"),
            None => "an unknown MaxBufferSize".to_owned(),
        };
        let is_clients = self.unused.operations >= self.largest.operations;
        let group = if is_clients { &self.unused } else { &self.largest };
        if group.operations == 0 {
            return;
        }
        let (clients, servers) = (list_names(&group.clients), list_names(&group.servers));
        let (sentence, remedies) = if is_clients {
            let offer = if group.is_large {
                format!("{name} (blocks of up to 64 KiB) and {}", buffer(group))
            } else {
                buffer(group)
            };
            let sentence = format!(
                "; the client {clients} does not use what the server {servers} offered in Negotiate: {offer}"
            );
            (sentence, vec![CLIENT])
        } else {
            let raw = if group.has_raw_mode {
                "; only raw mode (CAP_RAW_MODE), which was offered, moves more"
            } else {
                ""
            };
            let why = if group.is_signed {
                format!("signed messages exclude {name}")
            } else {
                format!("the server {servers} did not offer {name}")
            };
            let sentence = format!(
                "; {why}, so with {} this is the largest block that the client {clients} can use{raw}",
                buffer(group)
            );
            (sentence, vec![SAMBA, WINDOWS])
        };
        finding.what.push_str(&sentence);
        finding.remedies.splice(0..0, remedies.into_iter().map(Remedy::from));
    }
}
