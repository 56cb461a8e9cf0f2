//! Logs of Microsoft-Windows-SMBServer from the messages of a capture.
//!
//! Fields and their order are those of the manifests, as lists of names; values come from the messages. The
//! server's work is made: it divides the time between a request and its response into fixed shares.

use std::collections::HashMap;

use super::conversation::{Exchange, number};
use super::{Log, guid};
use crate::etl::Manifest;

const SERVER: u128 = 0xd48ce617_33a2_4bc3_a5c7_11aa4f29619e;

/// The layout of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Hits and cycles, as build 20348 writes them, at 2,600 MHz.
    Cycles,
    /// Hits and times in units of 100 ns, as build 26100 writes them.
    Times,
}

/// Shares of the time in percent: processing, queue, file system fast and slow, transport fast and slow, security.
const SHARES: [u64; 7] = [20, 10, 30, 25, 5, 4, 6];

const HEAD: &str =
    "SessionId:8 ProcessId:4 TreeId:4 MessageId:8 MasterMessageId:8 Command:2 Credits:2 Flags:4";

/// Fields of each request after the head, by command.
const REQUESTS: [(u16, u16, &str); 19] = [
    (0, 1, "SecurityMode:2 Capabilities:4 DialectCount:2 Dialects ClientGuid C"),
    (1, 2, "VcNumber:1 SecurityMode:1 Capabilities:4 Channel:4 PreviousSessionId:8 C S"),
    (2, 3, "C S"),
    (3, 4, "Name C S"),
    (4, 5, "C S T"),
    (13, 6, "C"),
    (12, 7, "C"),
    (
        5,
        8,
        "SecurityFlags:1 Oplock:1 Impersonation:4 CreateFlags:8 Zero:8 DesiredAccess:4 FileAttributes:4 ShareAccess:4 Disposition:4 Options:4 Name Contexts:4 LeaseKey LeaseLevel:4 C S T",
    ),
    (6, 9, "CloseFlags:2 FileId:8 C S T F"),
    (7, 10, "FileId:8 C S T F"),
    (
        8,
        11,
        "Length:4 Offset:8 FileId:8 MinimumCount:4 Channel:4 Remaining:4 Zero:2 Zero:2 C S T F",
    ),
    (9, 12, "Length:4 Offset:8 FileId:8 Channel:4 Remaining:4 Zero:2 Zero:2 WriteFlags:4 C S T F"),
    (18, 13, "OplockLevel:1 FileId:8 C S T F"),
    (10, 16, "FileId:8 C S T F LockCount:2 Locks"),
    (11, 17, "FileId:8 ControlCode:4 IoctlFlags:4 C S T F"),
    (14, 18, "Class:1 QueryFlags:1 FileIndex:4 FileId:8 OutputLength:4 Name C S T F"),
    (15, 19, "NotifyFlags:2 FileId:8 OutputLength:4 Filter:4 C S T F"),
    (16, 20, "InfoType:1 Class:1 OutputLength:4 Security:4 QueryFlags:4 FileId:8 C S T F"),
    (17, 21, "InfoType:1 Class:1 Security:4 FileId:8 OutputLength:4 Buffer C S T F"),
];

/// Fields of each response after the work.
const RESPONSES: [(u16, u16, &str); 18] = [
    (
        0,
        101,
        "SecurityMode:2 Dialect:2 Capabilities:4 MaxTransact:4 MaxRead:4 MaxWrite:4 SystemTime:8 C",
    ),
    (1, 102, "SessionFlags:2 C S"),
    (2, 103, "C S"),
    (3, 104, "ShareType:1 ShareFlags:4 ShareCapabilities:4 MaximalAccess:4 C S T"),
    (4, 105, "C S T"),
    (13, 106, "C"),
    (
        5,
        108,
        "Oplock:1 Action:4 Times Allocation:8 EndOfFile:8 Attributes:4 FileId:8 Contexts:4 LeaseKey LeaseLevel:4 C S T F",
    ),
    (6, 109, "CloseFlags:2 Times Allocation:8 EndOfFile:8 Attributes:4 C S T F"),
    (7, 110, "C S T F"),
    (8, 111, "DataLength:4 C S T F IoFileId"),
    (9, 112, "Count:4 Remaining:4 Zero:2 Zero:2 C S T F IoFileId"),
    (18, 113, "OplockLevel:1 FileId:8 C S T F"),
    (10, 116, "C S T F"),
    (11, 117, "ControlCode:4 IoctlFlags:4 FileId:8 C S T F"),
    (14, 118, "C S T F"),
    (15, 119, "C S T F"),
    (16, 120, "OutputLength:4 Buffer C S T F"),
    (17, 121, "C S T F"),
];

const LEASE_ACKNOWLEDGEMENT: &str = "LeaseFlags:4 LeaseState:4 Duration:8 BreakKey C S T F";

fn is_lease_acknowledgement(bytes: &[u8]) -> bool {
    number(bytes, 12, 2) == 18 && number(bytes, 64, 2) == 36
}

/// A request that waits for its response.
#[derive(Clone)]
struct Open {
    time_ns: i64,
    file: u64,
    tree: u32,
    session: u64,
    user: Option<(Vec<u8>, Vec<u8>)>,
}

/// A log with the events of the server about these messages.
pub fn server_events(exchanges: &[Exchange], layout: Layout) -> Vec<u8> {
    let build = if layout == Layout::Cycles { 20_348 } else { 26_100 };
    let mut log = Log::new(exchanges.first().map_or(0, |one| one.time_ns), build);
    let mut open: HashMap<(std::net::SocketAddrV4, u64), Open> = HashMap::new();
    let created = created(exchanges);
    let mut known = Vec::new();
    // What a related request takes from the one before it.
    let mut before = (0, 0, 0);
    for exchange in exchanges {
        let bytes = &exchange.bytes;
        let (command, message) = (number(bytes, 12, 2) as u16, number(bytes, 24, 8));
        let is_async = number(bytes, 16, 4) & 2 != 0;
        let connection = guid(
            (0xc0_0000 + u128::from(u32::from(*exchange.client.ip()))) << 16
                | u128::from(exchange.client.port()),
        );
        if !known.contains(&connection) {
            known.push(connection);
            let mut fields = connection.to_vec();
            fields.extend(16_u32.to_le_bytes());
            fields.extend(2_u16.to_le_bytes());
            fields.extend(exchange.client.port().to_be_bytes());
            fields.extend(exchange.client.ip().octets());
            fields.extend([0; 8]);
            fields.extend(0_u32.to_le_bytes());
            event(&mut log, 500, exchange.time_ns, &fields);
        }
        if message == u64::MAX {
            // Only lease breaks have an event.
            if number(bytes, 64, 2) == 44 {
                let nothing = Open { time_ns: 0, file: 0, tree: 0, session: 0, user: None };
                let fields = "LeaseFlags:4 Current:4 New:4 Zero:4 Zero:4 Zero:4 BreakKey C S T F";
                let written = write(&[HEAD, fields], exchange, &nothing, connection, &[]);
                event(&mut log, 14, exchange.time_ns, &written);
            }
            continue;
        }
        let key = (exchange.client, message);
        if !exchange.is_response {
            let is_related = number(bytes, 16, 4) & 4 != 0;
            let mut session = number(bytes, 40, 8);
            let mut tree = number(bytes, 36, 4) as u32;
            let mut file = volatile(bytes, command);
            if is_related {
                (session, tree) = (before.0, before.1);
                if file == u64::MAX {
                    file = before.2;
                }
            }
            let opened = created.get(&key).copied();
            before = (session, tree, opened.unwrap_or(file));
            let user = if command == 1 { user(bytes) } else { None };
            let asked = Open { time_ns: exchange.time_ns, file, tree, session, user };
            let Some((_, id, fields)) = REQUESTS.iter().find(|one| one.0 == command) else {
                continue;
            };
            // An acknowledgement of a lease break has its own event.
            let (id, fields) = if is_lease_acknowledgement(bytes) {
                (&15, &LEASE_ACKNOWLEDGEMENT)
            } else {
                (id, fields)
            };
            let written = write(&[HEAD, fields], exchange, &asked, connection, &[]);
            event(&mut log, *id, exchange.time_ns, &written);
            if command != 12 {
                open.insert(key, asked);
            }
            continue;
        }
        let status = number(bytes, 8, 4) as u32;
        if status == 0x103 {
            continue;
        }
        // An SMB1 Negotiate that offers SMB2 is answered by SMB2.
        let of_smb1 = (command == 0).then_some(Open {
            time_ns: exchange.time_ns,
            file: 0,
            tree: 0,
            session: 0,
            user: None,
        });
        let Some(mut asked) = open.remove(&key).or(of_smb1) else { continue };
        if !is_async && asked.tree == 0 {
            asked.tree = number(bytes, 36, 4) as u32;
        }
        asked.session = number(bytes, 40, 8).max(asked.session);
        if command == 5 && status == 0 {
            asked.file = number(bytes, 64 + 72, 8);
        }
        if let (Some((name, domain)), 0) = (&asked.user, status) {
            let mut fields = guid(0x5e_0000 << 64 | u128::from(asked.session)).to_vec();
            fields.extend(connection);
            for text in [name, domain] {
                fields.extend((text.len() as u16 / 2).to_le_bytes());
                fields.extend(text);
            }
            event(&mut log, 552, exchange.time_ns, &fields);
        }
        let is_error =
            !(status == 0 || status == 0x8000_0005 || (command == 1 && status == 0xc000_0016));
        let is_io = (command == 8 || command == 9) && !is_error;
        let elapsed_ns = (exchange.time_ns - asked.time_ns).max(0) as u64;
        let work = work(elapsed_ns, layout, is_io, status);
        let (id, fields) = match RESPONSES.iter().find(|one| one.0 == command) {
            _ if !is_error && is_lease_acknowledgement(bytes) => (115, LEASE_ACKNOWLEDGEMENT),
            Some((_, id, fields)) if !is_error => (*id, *fields),
            _ => (122, "C S T F"),
        };
        let fields = match layout {
            Layout::Times => fields.replace("IoFileId", "FileId:8"),
            Layout::Cycles => fields.replace(" IoFileId", ""),
        };
        let written = write(&[HEAD, "Work", &fields], exchange, &asked, connection, &work);
        event(&mut log, id, exchange.time_ns, &written);
    }
    log.finish()
}

/// The opens that Creates made. A server works on the members of a compound one after the other, and knows the
/// open of a Create when it begins with the next member.
fn created(exchanges: &[Exchange]) -> HashMap<(std::net::SocketAddrV4, u64), u64> {
    let is_create = |one: &&Exchange| {
        one.is_response && number(&one.bytes, 12, 2) == 5 && number(&one.bytes, 8, 4) == 0
    };
    let creates = exchanges.iter().filter(is_create);
    creates
        .map(|one| ((one.client, number(&one.bytes, 24, 8)), number(&one.bytes, 136, 8)))
        .collect()
}

/// A log with the messages themselves (event 40000), in pieces (event 2000) of at most `piece_bytes` if that is
/// not 0.
pub fn server_messages(exchanges: &[Exchange], piece_bytes: usize) -> Vec<u8> {
    let mut log = Log::new(exchanges.first().map_or(0, |one| one.time_ns), 20_348);
    for exchange in exchanges.iter().filter(|exchange| !exchange.whole.is_empty()) {
        let mut fields = 1_u32.to_le_bytes().to_vec();
        fields.extend(16_u32.to_le_bytes());
        fields.extend(2_u16.to_le_bytes());
        fields.extend(exchange.client.port().to_be_bytes());
        fields.extend(exchange.client.ip().octets());
        fields.extend([0; 8]);
        fields.extend((exchange.whole.len() as u32).to_le_bytes());
        fields.extend(&exchange.whole);
        let most = if piece_bytes == 0 { 60_000 } else { piece_bytes };
        let pieces: Vec<_> = fields.chunks(most).collect();
        for (place, piece) in pieces.iter().enumerate() {
            let first = if place == 0 { 0x4000_0000 } else { 0 };
            let last = if place + 1 == pieces.len() { 0x8000_0000 } else { 0 };
            let head = Manifest { guid: guid(SERVER), thread: 9, ..Manifest::default() };
            let head = Manifest { keyword: first | last, ..head };
            if pieces.len() == 1 {
                log.event(&Manifest { id: 40_000, ..head }, exchange.time_ns, piece);
                continue;
            }
            let mut part = 40_000_u16.to_le_bytes().to_vec();
            part.extend((piece.len() as u32).to_le_bytes());
            part.extend(*piece);
            log.event(&Manifest { id: 2_000, ..head }, exchange.time_ns, &part);
        }
    }
    log.finish()
}

fn event(log: &mut Log, id: u16, time_ns: i64, fields: &[u8]) {
    let head = Manifest { guid: guid(SERVER), id, version: 2, thread: 9, ..Manifest::default() };
    log.event(&head, time_ns, fields);
}

/// Status and work of a response.
fn work(elapsed_ns: u64, layout: Layout, is_io: bool, status: u32) -> Vec<u8> {
    let units = match layout {
        Layout::Cycles => elapsed_ns * 2_600 / 1_000,
        Layout::Times => elapsed_ns / 100,
    };
    let mut out = status.to_le_bytes().to_vec();
    if layout == Layout::Times {
        out.extend(1_u32.to_le_bytes());
    }
    let mut left = units;
    let mut put = |hits: u32, units: u64| {
        out.extend(hits.to_le_bytes());
        out.extend(units.to_le_bytes());
    };
    for (place, share) in SHARES.iter().enumerate() {
        let is_last = place + 1 == SHARES.len();
        if is_last && is_io && layout == Layout::Times {
            put(0, 0);
        }
        let part = if is_last { left } else { units * share / 100 };
        left -= part;
        put(1 + place as u32, part);
    }
    if layout == Layout::Times {
        out.extend(units.to_le_bytes());
    }
    out
}

/// The fields of lists, one after the other.
fn write(
    lists: &[&str],
    exchange: &Exchange,
    asked: &Open,
    connection: [u8; 16],
    work: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    let bytes = &exchange.bytes;
    let command = number(bytes, 12, 2) as u16;
    for field in lists.iter().flat_map(|list| list.split(' ')) {
        let named = |name: u128| guid(name << 64 | u128::from(asked.session));
        match field {
            "C" => out.extend(connection),
            "S" if asked.session == 0 => out.extend([0; 16]),
            "S" => out.extend(named(0x5e_0000)),
            "T" => out.extend(guid(0x7e_0000_0000 + u128::from(asked.tree))),
            "F" => out.extend(guid(0xf1_0000 << 64 | u128::from(asked.file))),
            "Work" => out.extend(work),
            "ClientGuid" => out.extend(bytes.get(76..92).unwrap_or(&[0; 16])),
            "Dialects" => out.extend(&bytes[100..100 + 2 * number(bytes, 66, 2) as usize]),
            "Times" => {
                out.extend(&bytes[72..104]);
            }
            "Name" => {
                let name = name(bytes, command);
                out.extend((name.len() as u16 / 2).to_le_bytes());
                out.extend(name);
            }
            "LeaseKey" => out.extend(lease(bytes).map_or([0; 16], |(key, _)| key)),
            "BreakKey" => out.extend(bytes.get(72..88).unwrap_or(&[0; 16])),
            "Buffer" => out.extend(buffer(bytes, command, exchange.is_response)),
            "Locks" => {
                for lock in bytes[88..].chunks_exact(24).take(number(bytes, 66, 2) as usize) {
                    out.extend(&lock[..16]);
                }
            }
            _ => {
                let (field, length) = field.split_once(':').unwrap();
                let length: usize = length.parse().unwrap();
                let value = match field {
                    "SessionId" => asked.session,
                    "TreeId" => u64::from(asked.tree),
                    "FileId" => asked.file,
                    "MasterMessageId" => exchange.master,
                    "LeaseLevel" => lease(bytes).map_or(0, |(_, state)| state.into()),
                    _ => value(bytes, command, exchange.is_response, field),
                };
                out.extend(&value.to_le_bytes()[..length]);
            }
        }
    }
    out
}

/// Where a field is in a message: command, whether it is a response, name, offset and length.
const PLACES: &[(u16, bool, &str, usize, usize)] = &[
    (0, false, "SecurityMode", 68, 2),
    (0, false, "Capabilities", 72, 4),
    (0, false, "DialectCount", 66, 2),
    (0, true, "SecurityMode", 66, 2),
    (0, true, "Dialect", 68, 2),
    (0, true, "Capabilities", 88, 4),
    (0, true, "MaxTransact", 92, 4),
    (0, true, "MaxRead", 96, 4),
    (0, true, "MaxWrite", 100, 4),
    (0, true, "SystemTime", 104, 8),
    (1, false, "VcNumber", 66, 1),
    (1, false, "SecurityMode", 67, 1),
    (1, false, "Capabilities", 68, 4),
    (1, false, "Channel", 72, 4),
    (1, false, "PreviousSessionId", 80, 8),
    (1, true, "SessionFlags", 66, 2),
    (3, true, "ShareType", 66, 1),
    (3, true, "ShareFlags", 68, 4),
    (3, true, "ShareCapabilities", 72, 4),
    (3, true, "MaximalAccess", 76, 4),
    (5, false, "SecurityFlags", 66, 1),
    (5, false, "Oplock", 67, 1),
    (5, false, "Impersonation", 68, 4),
    (5, false, "CreateFlags", 72, 8),
    (5, false, "DesiredAccess", 88, 4),
    (5, false, "FileAttributes", 92, 4),
    (5, false, "ShareAccess", 96, 4),
    (5, false, "Disposition", 100, 4),
    (5, false, "Options", 104, 4),
    (5, true, "Oplock", 66, 1),
    (5, true, "Action", 68, 4),
    (5, true, "Allocation", 104, 8),
    (5, true, "EndOfFile", 112, 8),
    (5, true, "Attributes", 120, 4),
    (6, false, "CloseFlags", 66, 2),
    (6, true, "CloseFlags", 66, 2),
    (6, true, "Allocation", 104, 8),
    (6, true, "EndOfFile", 112, 8),
    (6, true, "Attributes", 120, 4),
    (8, false, "Length", 68, 4),
    (8, false, "Offset", 72, 8),
    (8, false, "MinimumCount", 96, 4),
    (8, false, "Channel", 100, 4),
    (8, false, "Remaining", 104, 4),
    (8, true, "DataLength", 68, 4),
    (9, false, "Length", 68, 4),
    (9, false, "Offset", 72, 8),
    (9, false, "Channel", 96, 4),
    (9, false, "Remaining", 100, 4),
    (9, false, "WriteFlags", 108, 4),
    (9, true, "Count", 68, 4),
    (9, true, "Remaining", 72, 4),
    (10, false, "LockCount", 66, 2),
    (11, false, "ControlCode", 68, 4),
    (11, false, "IoctlFlags", 112, 4),
    (11, true, "ControlCode", 68, 4),
    (14, false, "Class", 66, 1),
    (14, false, "QueryFlags", 67, 1),
    (14, false, "FileIndex", 68, 4),
    (14, false, "OutputLength", 92, 4),
    (15, false, "NotifyFlags", 66, 2),
    (15, false, "OutputLength", 68, 4),
    (15, false, "Filter", 88, 4),
    (16, false, "InfoType", 66, 1),
    (16, false, "Class", 67, 1),
    (16, false, "OutputLength", 68, 4),
    (16, false, "Security", 80, 4),
    (16, false, "QueryFlags", 84, 4),
    (16, true, "OutputLength", 68, 4),
    (17, false, "InfoType", 66, 1),
    (17, false, "Class", 67, 1),
    (17, false, "OutputLength", 68, 4),
    (17, false, "Security", 76, 4),
    (18, false, "LeaseFlags", 68, 4),
    (18, false, "LeaseState", 88, 4),
    (18, false, "Duration", 92, 8),
    (18, true, "LeaseFlags", 68, 4),
    (18, true, "LeaseState", 88, 4),
    (18, true, "Duration", 92, 8),
    (18, true, "Current", 88, 4),
    (18, true, "New", 92, 4),
    (18, false, "OplockLevel", 66, 1),
    (18, true, "OplockLevel", 66, 1),
];

fn value(bytes: &[u8], command: u16, is_response: bool, field: &str) -> u64 {
    match field {
        "ProcessId" => 0xfeff,
        "MessageId" => number(bytes, 24, 8),
        "Command" => command.into(),
        "Credits" => number(bytes, 14, 2),
        "Flags" => number(bytes, 16, 4),
        "Contexts" => lease(bytes).is_some().into(),
        _ => PLACES
            .iter()
            .find(|one| one.0 == command && one.1 == is_response && one.2 == field)
            .map_or(0, |one| number(bytes, one.3, one.4)),
    }
}

/// The volatile part of the FileId of a request.
fn volatile(bytes: &[u8], command: u16) -> u64 {
    let at = match command {
        6 | 7 | 15 | 18 => 72,
        8 | 9 => 80,
        10 | 11 => 72,
        14 => 72,
        16 => 88,
        17 => 80,
        _ => return 0,
    };
    number(bytes, at + 8, 8)
}

/// Path of a TreeConnect, name of a Create or pattern of a QueryDirectory.
fn name(bytes: &[u8], command: u16) -> Vec<u8> {
    let (at, length) = match command {
        3 => (number(bytes, 68, 2), number(bytes, 70, 2)),
        5 => (number(bytes, 108, 2), number(bytes, 110, 2)),
        _ => (number(bytes, 88, 2), number(bytes, 90, 2)),
    };
    bytes.get(at as usize..(at + length) as usize).unwrap_or_default().to_vec()
}

fn buffer(bytes: &[u8], command: u16, is_response: bool) -> Vec<u8> {
    let (at, length) = match (command, is_response) {
        (16, true) => (number(bytes, 66, 2), number(bytes, 68, 4)),
        _ => (number(bytes, 72, 2), number(bytes, 68, 4)),
    };
    let mut buffer = bytes.get(at as usize..(at + length) as usize).unwrap_or_default().to_vec();
    buffer.resize(length as usize, 0);
    buffer
}

/// Key and state of a lease in the contexts of a Create.
fn lease(bytes: &[u8]) -> Option<([u8; 16], u32)> {
    let at = bytes.windows(4).position(|four| four == b"RqLs")?;
    let data = bytes.get(at + 8..at + 28)?;
    Some((data[..16].try_into().ok()?, number(data, 16, 4) as u32))
}

/// User and domain in a token of NTLM.
fn user(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = bytes.windows(12).position(|token| token == b"NTLMSSP\0\x03\0\0\0")?;
    let token = &bytes[at..];
    let text = |field: usize| {
        let (length, from) =
            (number(token, field, 2) as usize, number(token, field + 4, 4) as usize);
        token.get(from..from + length).map(<[u8]>::to_vec)
    };
    Some((text(36)?, text(28)?)).filter(|(user, _)| !user.is_empty())
}
