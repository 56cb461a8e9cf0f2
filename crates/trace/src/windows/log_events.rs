//! Events that the Windows SMB server and client write on their own: to their event logs (`.evtx`), and to a log of
//! theirs (`.etl`); and an event about CPUs in the log `System`.
//!
//! Owns which events are read, their fields, and what a row of `server_events` says of them. Fields of `.etl` are
//! those of the manifests of builds 10240 to 18990 and of the list of build 28000; an event log names its fields
//! itself. What the events mean is in Microsoft's list of SMB events and in their messages.

use std::net::SocketAddr;

use smbscope_tables::tables::ServerEvent;
use smbscope_wire::smb2::Command;

use super::fields::{Fields, text};
use super::provider::Provider;
use super::server::socket_address;

/// Names that are longer are cut.
const NAME_MAX: usize = 1_024;

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    Text(String),
    Address(SocketAddr),
}

/// An event that is read.
struct Known {
    provider: Provider,
    id: u16,
    kind: &'static str,
    /// Fields by the version of the event, lowest first: those of the highest one that is not above the event's.
    layouts: &'static [(u16, &'static str)],
}

const fn server(id: u16, kind: &'static str, layouts: &'static [(u16, &'static str)]) -> Known {
    Known { provider: Provider::SmbServer, id, kind, layouts }
}

const fn client(id: u16, kind: &'static str, layouts: &'static [(u16, &'static str)]) -> Known {
    Known { provider: Provider::SmbClient, id, kind, layouts }
}

/// Fields of an operation that took long.
const SLOW: &str = "Command:4 -:16 -:8 -:16 UserName:t ClientName:t ClientAddress:s ShareName:t FileName:t DurationInMilliseconds:8 ThresholdInMilliseconds:8";
/// Names of a share, a client and a user.
const SHARE_CLIENT_USER: &str = "ShareName:t ClientName:t UserName:t";
/// Why a client's connection ended.
const CONNECTION: &str = "Reason:4 Status:4 ServerName:t";
const SESSION: &str = "Status:4 -:8 -:4 ServerName:t";

/// Fields are separated by spaces: a name (`-` for one that is not used) and a number of bytes, `t` for text after
/// its length, `s` and `S` for an address after a length of two or four bytes, `z` for text up to a zero, `a` for
/// the same in one byte each.
const KNOWN: [Known; 33] = [
    server(
        551,
        "logon_failed",
        &[
            (0, "-:16 -:16 Status:4"),
            (1, "-:16 -:16 Status:4 -:4 ClientAddress:S -:8 UserName:t ClientName:t"),
        ],
    ),
    server(1_003, "unencrypted_refused", &[(0, SHARE_CLIENT_USER)]),
    server(1_004, "signature_wrong", &[(0, "ClientName:t UserName:t")]),
    server(
        1_005,
        "negotiate_changed",
        &[(0, "ClientName:t UserName:t"), (2, "Status:4 -:4 ClientName:t UserName:t")],
    ),
    server(
        1_016,
        "reopen_failed",
        &[(
            0,
            "Status:4 -:4 -:4 -:4 -:16 ClientName:t ClientAddress:s ShareName:t UserName:t -:8 FileName:t",
        )],
    ),
    server(1_020, "slow_file_system", &[(0, SLOW)]),
    server(1_046, "cipher_refused", &[(0, SHARE_CLIENT_USER)]),
    server(1_047, "slow_command", &[(0, "-:4 Smb2Command:2 -:2 Duration:8 Threshold:8")]),
    server(1_054, "slow_network", &[(0, SLOW)]),
    server(3_000, "smb1_access", &[(0, "ClientName:a")]),
    server(3_021, "no_signing", &[(0, "ClientName:t"), (1, "ClientName:t UserName:t")]),
    server(3_022, "no_encryption", &[(0, "ClientName:t")]),
    server(3_023, "guest_logon", &[(0, "ClientName:t")]),
    server(3_027, "no_signing", &[(0, "ClientName:t")]),
    client(30_800, "name_not_resolved", &[(0, CONNECTION)]),
    client(30_803, "connect_failed", &[(0, CONNECTION)]),
    client(30_804, "disconnected", &[(0, CONNECTION), (2, "-:4 Status:4 -:t ServerName:t")]),
    client(30_805, "session_lost", &[(0, SESSION)]),
    client(30_806, "session_restored", &[(0, SESSION)]),
    client(30_807, "share_lost", &[(0, SESSION)]),
    client(30_808, "share_restored", &[(0, SESSION)]),
    client(
        30_809,
        "request_expired",
        &[(0, "Smb2Command:2 -:8 -:8 -:4 ServerName:t Status:4 -:t -:4 ElapsedTimeInMs:4")],
    ),
    client(30_818, "rdma_fallback", &[(0, "ServerName:t")]),
    client(30_822, "channel_failed", &[(0, CONNECTION)]),
    client(30_823, "connection_hung", &[(0, CONNECTION)]),
    client(30_829, "session_refused", &[(0, "Status:4 -:8 ServerName:t")]),
    client(30_904, "no_multichannel", &[(0, "ServerName:t")]),
    client(30_909, "rdma_with_signing", &[(0, "ServerName:t")]),
    client(30_910, "rdma_with_encryption", &[(0, "ServerName:t")]),
    client(31_010, "share_refused", &[(0, "-:4 Status:4 ShareName:t FileName:t")]),
    client(31_013, "signing_failed", &[(0, "Smb2Command:2 -:8 -:8 -:4 ServerName:t Status:4")]),
    client(30_108, "credits_exhausted", &[(0, "")]),
    // Of event logs only: a log of the kernel has the frequencies themselves.
    Known { provider: Provider::ProcessorPower, id: 37, kind: "processor_limited", layouts: &[] },
];

/// An event of the server or the client that reports no trouble. Only event logs have a row for each.
pub const OTHER: &str = "other";

/// Whether an event is read.
pub fn is_known(provider: Provider, id: u16) -> bool {
    // These have millions of events.
    !matches!(provider, Provider::PacketCapture | Provider::PacketMonitor)
        && KNOWN.iter().any(|known| (known.provider, known.id) == (provider, id))
}

/// The row of an event of a log whose fields are those of the manifest. An event that is longer has fields that
/// are not used.
pub fn of_fields(
    provider: Provider,
    id: u16,
    version: u16,
    payload: &[u8],
    time_ns: i64,
    recording: &str,
) -> Option<ServerEvent> {
    let known = KNOWN.iter().find(|known| (known.provider, known.id) == (provider, id))?;
    let layout = known.layouts.iter().rev().find(|(from, _)| *from <= version)?.1;
    let mut values = Vec::new();
    let mut fields = Fields::new(payload);
    for field in layout.split(' ').filter(|field| !field.is_empty()) {
        let (name, form) = field.split_once(':')?;
        let value = value(&mut fields, form)?;
        if name != "-" {
            values.push((name, value));
        }
    }
    let get =
        |name: &str| values.iter().find(|(one, _)| *one == name).map(|(_, value)| value.clone());
    of_values(provider, id, time_ns, recording, &get)
}

/// The row of an event whose fields are known by name; `None` for events of other parts of Windows.
pub fn of_values(
    provider: Provider,
    id: u16,
    time_ns: i64,
    recording: &str,
    get: &dyn Fn(&str) -> Option<Value>,
) -> Option<ServerEvent> {
    let known = KNOWN.iter().find(|known| (known.provider, known.id) == (provider, id));
    let kind = match (known, provider) {
        (Some(known), _) => known.kind,
        (None, Provider::SmbServer | Provider::SmbClient) => OTHER,
        _ => return None,
    };
    let words = |name: &str| match get(name)? {
        Value::Text(mut words) => {
            words.truncate(words.char_indices().nth(NAME_MAX).map_or(words.len(), |(at, _)| at));
            (!words.is_empty()).then_some(words)
        }
        Value::Address(end) => Some(end.ip().to_string()),
        Value::Number(_) => None,
    };
    let number = |name: &str| match get(name)? {
        Value::Number(number) => Some(number),
        _ => None,
    };
    let duration = |name: &str, unit_ns: u64| {
        number(name).and_then(|number| i64::try_from(number.checked_mul(unit_ns)?).ok())
    };
    const MILLISECOND_NS: u64 = 1_000_000;
    let command = number("Command").or_else(|| number("Smb2Command"));
    let command = command.and_then(|code| u16::try_from(code).ok()).map(Command);
    let (server, share_of_server) = server_and_share(words("ServerName"));
    Some(ServerEvent {
        recording: recording.to_owned(),
        time: time_ns,
        provider: provider.short().to_owned(),
        event: id.into(),
        kind: kind.to_owned(),
        command: command.and_then(|command| command.name()).map(str::to_owned),
        user: words("UserName"),
        client: words("ClientName").or_else(|| words("ClientAddress")),
        server,
        share: words("ShareName").or(share_of_server),
        path: words("FileName").or_else(|| words("ObjectName")),
        // The unit of a slow command is not documented; only events with a unit in the name of the field have a
        // duration.
        duration_ns: duration("DurationInMilliseconds", MILLISECOND_NS)
            .or_else(|| duration("ElapsedTimeInMs", MILLISECOND_NS))
            .or_else(|| duration("CapDurationInSeconds", 1_000 * MILLISECOND_NS)),
        threshold_ns: duration("ThresholdInMilliseconds", MILLISECOND_NS),
        status: number("Status"),
    })
}

/// Events name a server as `name`, `\\name`, or with the share as `\\name\share`.
fn server_and_share(name: Option<String>) -> (Option<String>, Option<String>) {
    let Some(name) = name else { return (None, None) };
    let path = name.trim_start_matches('\\');
    match path.split_once('\\') {
        Some((server, _)) => (Some(server.to_owned()), Some(format!(r"\\{path}"))),
        None => (Some(path.to_owned()).filter(|path| !path.is_empty()), None),
    }
}

fn value(fields: &mut Fields<'_>, form: &str) -> Option<Value> {
    Some(match form {
        "t" => {
            let length = usize::from(fields.u16()?);
            Value::Text(text(fields.utf16(length, 0)?))
        }
        "s" | "S" => {
            let length = match form {
                "s" => usize::from(fields.u16()?),
                _ => fields.u32()? as usize,
            };
            let bytes = fields.bytes(length)?;
            socket_address(bytes).map_or(Value::Text(String::new()), Value::Address)
        }
        "a" => {
            let mut name = Vec::new();
            loop {
                match fields.u8()? {
                    0 => break,
                    byte if name.len() < NAME_MAX => name.push(byte),
                    _ => {}
                }
            }
            Value::Text(String::from_utf8_lossy(&name).into_owned())
        }
        bytes => {
            let bytes = fields.bytes(bytes.parse().ok()?)?;
            let mut eight = [0; 8];
            let used = bytes.get(..8).unwrap_or(bytes);
            eight.get_mut(..used.len())?.copy_from_slice(used);
            Value::Number(u64::from_le_bytes(eight))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(words: &str) -> Vec<u8> {
        let units: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
        [&(units.len() as u16 / 2).to_le_bytes()[..], &units].concat()
    }

    #[test]
    fn a_slow_operation_says_who_where_and_how_long() {
        let mut fields = 9_u32.to_le_bytes().to_vec();
        fields.extend([7; 40]);
        fields.extend([t("LAB\\alice"), t("\\\\pc7")].concat());
        fields.extend(16_u16.to_le_bytes());
        fields.extend([2, 0, 0x01, 0xbd, 10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        fields.extend([t("\\\\*\\home"), t("a\\b.docx")].concat());
        fields.extend(31_000_u64.to_le_bytes());
        fields.extend(15_000_u64.to_le_bytes());
        let of = |payload: &[u8]| of_fields(Provider::SmbServer, 1_020, 1, payload, 5, "r");
        let row = of(&fields).unwrap();
        assert_eq!(
            (row.kind.as_str(), row.command.as_deref()),
            ("slow_file_system", Some("Write"))
        );
        assert_eq!(
            (row.user.as_deref(), row.client.as_deref()),
            (Some("LAB\\alice"), Some("\\\\pc7"))
        );
        assert_eq!(
            (row.share.as_deref(), row.path.as_deref()),
            (Some("\\\\*\\home"), Some("a\\b.docx"))
        );
        assert_eq!(row.duration_ns, Some(31_000_000_000));
        assert_eq!(row.threshold_ns, Some(15_000_000_000));
        // Later versions have more fields; a damaged event has none.
        assert!(of(&[&fields[..], &[0; 12]].concat()).is_some());
        assert!((0..fields.len()).all(|cut| of(&fields[..cut]).is_none()));
        assert_eq!(of_fields(Provider::SmbServer, 9, 0, &fields, 5, "r"), None);
    }

    #[test]
    fn a_server_has_one_name_and_a_share_is_of_a_server() {
        let of = |name: &str| server_and_share(Some(name.to_owned()));
        let server = Some("pc7".to_owned());
        for name in ["pc7", r"\pc7", r"\\pc7"] {
            assert_eq!(of(name), (server.clone(), None), "{name}");
        }
        assert_eq!(of(r"\pc7\c$"), (server, Some(r"\\pc7\c$".to_owned())));
        assert_eq!((of("\\"), server_and_share(None)), ((None, None), (None, None)));
        // The session came back: 30806 of build 18990, version 2.
        let fields = [&0_u32.to_le_bytes()[..], &[7; 8], &[0; 4], &t(r"\pc7"), &[0; 4]].concat();
        let row = of_fields(Provider::SmbClient, 30_806, 2, &fields, 5, "r").unwrap();
        assert_eq!((row.kind.as_str(), row.server.as_deref()), ("session_restored", Some("pc7")));
    }

    #[test]
    fn every_event_has_a_kind_that_the_table_lists() {
        let doc = ServerEvent::specs().into_iter().find(|spec| spec.name == "kind").unwrap().doc;
        for known in &KNOWN {
            assert!(doc.contains(known.kind), "{}", known.kind);
            assert!(known.layouts.is_sorted_by_key(|(version, _)| *version));
        }
    }
}
