//! What `Get-SmbServerConfiguration`, `Get-SmbClientConfiguration` and `Get-SmbShare` print: lists (`Name : value`),
//! tables, and JSON of `ConvertTo-Json`.
//!
//! The object follows from properties that only one of the three has; without one of them, from the command above the
//! output. Values are texts as they are printed: `True`, `512`, `AES_128_GCM, AES_128_CCM`. Names of properties are
//! those of MSFT_SmbServerConfiguration, MSFT_SmbClientConfiguration and MSFT_SmbShare.

mod json;

use super::super::setting::{Place, SmbObject, Value};
use super::sink::Sink;
use super::text::lines;

pub(super) use json::read as read_json;

/// Properties of the server's configuration that neither the client's has nor a share.
const SERVER: [&str; 40] = [
    "AnnounceComment",
    "AnnounceServer",
    "AsynchronousCredits",
    "AuditClientDoesNotSupportEncryption",
    "AuditClientDoesNotSupportSigning",
    "AuditInsecureGuestLogon",
    "AuditSmb1Access",
    "AutoDisconnectTimeout",
    "AutoShareServer",
    "AutoShareWorkstation",
    "CachedOpenLimit",
    "DisableSmbEncryptionOnSecureConnection",
    "DurableHandleV2TimeoutInSeconds",
    "EnableAuthenticateUserSharing",
    "EnableAuthRateLimiter",
    "EnableDownlevelTimewarp",
    "EnableForcedLogoff",
    "EnableLeasing",
    "EnableOplocks",
    "EnableSMB1Protocol",
    "EnableSMB2Protocol",
    "EnableStrictNameChecking",
    "InvalidAuthenticationDelayTimeInMs",
    "IrpStackSize",
    "MaxChannelPerSession",
    "MaxMpxCount",
    "MaxSessionPerConnection",
    "MaxThreadsPerQueue",
    "MaxWorkItems",
    "NullSessionPipes",
    "NullSessionShares",
    "OplockBreakWait",
    "PendingClientTimeoutInSeconds",
    "RejectUnencryptedAccess",
    "ServerHidden",
    "Smb2CreditsMax",
    "Smb2CreditsMin",
    "SmbServerNameHardeningLevel",
    "TreatHostAsStableStorage",
    "ValidateTargetName",
];

/// Properties of the client's configuration only.
const CLIENT: [&str; 25] = [
    "AuditServerDoesNotSupportEncryption",
    "AuditServerDoesNotSupportSigning",
    "BlockNTLM",
    "ConnectionCountPerRssNetworkInterface",
    "DirectoryCacheEntriesMax",
    "DirectoryCacheEntrySizeMax",
    "DirectoryCacheLifetime",
    "DormantFileLimit",
    "EnableBandwidthThrottling",
    "EnableByteRangeLockingOnReadOnlyFiles",
    "EnableInsecureGuestLogons",
    "EnableLargeMtu",
    "EnableLoadBalanceScaleOut",
    "ExtendedSessionTimeout",
    "FileInfoCacheEntriesMax",
    "FileInfoCacheLifetime",
    "FileNotFoundCacheEntriesMax",
    "FileNotFoundCacheLifetime",
    "ForceSMBEncryptionOverQuic",
    "KeepConn",
    "MaximumConnectionCountPerServer",
    "OplocksDisabled",
    "SessionTimeout",
    "UseOpportunisticLocking",
    "WindowSizeThreshold",
];

/// Properties of a share only.
const SHARE: [&str; 7] = [
    "ScopeName",
    "FolderEnumerationMode",
    "CachingMode",
    "ContinuouslyAvailable",
    "ConcurrentUserLimit",
    "LeasingMode",
    "CATimeout",
];

/// Properties that describe the object or its state, or PowerShell's view of it.
const NOT_SETTINGS: [&str; 13] = [
    "CimClass",
    "CimInstanceProperties",
    "CimSystemProperties",
    "PSComputerName",
    "PSShowComputerName",
    "RunspaceId",
    "PresetPathAcl",
    "CurrentUsers",
    "ShareState",
    "ShadowCopy",
    "Volume",
    "Temporary",
    "Special",
];

/// Lines of a table's heading.
const HEADING_LINES_MAX: usize = 3;
const PROPERTIES_MAX: usize = 1_000;
/// Columns of a table; further ones are not read.
const COLUMNS_MAX: usize = 64;

/// A property: its name, its text, and the line it is on.
struct Property {
    name: String,
    text: String,
    line: u64,
}

/// Whether a text looks like a list or a table of one of the three.
pub(super) fn is_output(text: &str) -> bool {
    let known = |name: &str| {
        SERVER.iter().chain(&CLIENT).chain(&SHARE).any(|known| known.eq_ignore_ascii_case(name))
    };
    let mut previous = "";
    text.lines().any(|line| {
        let is_list = list_line(line).is_some_and(|(name, _)| known(name));
        let is_table = is_dashes(line) && previous.split_whitespace().any(known);
        previous = line;
        is_list || is_table
    })
}

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let lines: Vec<(u64, &str)> = lines(text).collect();
    let mut command = None;
    let mut at = 0;
    while let Some((number, line)) = lines.get(at).copied() {
        if line.trim().is_empty() {
            at += 1;
        } else if list_line(line).is_some() {
            let (object, next) = list(&lines, at);
            emit(&object, command, sink);
            at = next;
        } else if line.trim_start().to_ascii_lowercase().starts_with("get-smb") {
            // A command that was copied with its output.
            match command_of(line) {
                Some(object) => command = Some(object),
                None => sink.unknown(number, line, "a command whose output is not read"),
            }
            at += 1;
        } else if let Some(dashes) = (1..=HEADING_LINES_MAX)
            .find(|ahead| lines.get(at + ahead).is_some_and(|(_, line)| is_dashes(line)))
        {
            at = table(&lines, at, at + dashes, command, sink);
        } else {
            // `PS C:\\> Get-SmbShare`, or a sentence that names it.
            match command_of(line) {
                Some(object) => command = Some(object),
                None => sink.unknown(number, line, "neither a property nor a table"),
            }
            at += 1;
        }
    }
}

/// What a command prints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    Server,
    Client,
    Share,
}

fn command_of(line: &str) -> Option<Object> {
    let lower = line.to_ascii_lowercase();
    let found = [
        ("smbserverconfiguration", Object::Server),
        ("smbclientconfiguration", Object::Client),
        ("smbshare", Object::Share),
    ];
    found.into_iter().find_map(|(name, object)| lower.contains(name).then_some(object))
}

/// `Name : value`, with a name of one word.
fn list_line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (name, value) = line.split_once(" : ").or_else(|| Some((line.strip_suffix(" :")?, "")))?;
    let name = name.trim_end();
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name, value.trim()))
}

/// The line under the heading of a table.
fn is_dashes(line: &str) -> bool {
    line.contains("--") && line.bytes().all(|byte| matches!(byte, b'-' | b' ' | b'\t'))
}

/// The properties until an empty line, or until the first one comes again.
fn list(lines: &[(u64, &str)], start: usize) -> (Vec<Property>, usize) {
    let mut object: Vec<Property> = Vec::new();
    let indented = lines.get(start).map_or(0, |(_, line)| indentation(line));
    let mut at = start;
    while let Some((number, line)) = lines.get(at).copied() {
        if line.trim().is_empty() {
            break;
        }
        let is_deeper = indentation(line) > indented;
        match list_line(line).filter(|_| !is_deeper) {
            Some((name, _))
                if object.first().is_some_and(|first| first.name.eq_ignore_ascii_case(name)) =>
            {
                break;
            }
            Some((name, value)) if object.len() < PROPERTIES_MAX => {
                object.push(Property {
                    name: name.to_owned(),
                    text: value.to_owned(),
                    line: number,
                });
            }
            // PowerShell cuts long values at the width of its window.
            None if is_deeper => {
                if let Some(last) = object.last_mut() {
                    if last.text.ends_with(',') {
                        last.text.push(' ');
                    }
                    last.text.push_str(line.trim());
                }
            }
            _ => break,
        }
        at += 1;
    }
    (object, at)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Reads a table whose line of dashes is known, and returns the line behind it.
fn table(
    lines: &[(u64, &str)],
    heading: usize,
    dashes: usize,
    command: Option<Object>,
    sink: &mut Sink<'_>,
) -> usize {
    let Some((_, ruler)) = lines.get(dashes) else { return lines.len() };
    let mut columns: Vec<(usize, usize)> = Vec::new();
    for (at, letter) in ruler.char_indices() {
        let is_full = columns.len() >= COLUMNS_MAX;
        match columns.last_mut() {
            _ if letter != '-' => {}
            Some((_, end)) if *end == at => *end = at + 1,
            _ if !is_full => columns.push((at, at + 1)),
            _ => {}
        }
    }
    // A column ends where the next one begins; letters of other alphabets are counted, not their bytes.
    let cell = |line: &str, column: usize| -> String {
        let start = columns.get(column).map_or(0, |(start, _)| *start);
        let end = columns.get(column + 1).map_or(usize::MAX, |(start, _)| *start);
        line.chars().skip(start).take(end - start).collect::<String>().trim().to_owned()
    };
    let names: Vec<String> = (0..columns.len())
        .map(|column| {
            let parts = lines.get(heading..dashes).unwrap_or_default().iter();
            parts.map(|(_, line)| cell(line, column)).collect()
        })
        .collect();
    let mut at = dashes + 1;
    while let Some((number, line)) =
        lines.get(at).copied().filter(|(_, line)| !line.trim().is_empty())
    {
        let mut object = Vec::new();
        for (column, name) in names.iter().enumerate() {
            let text = cell(line, column);
            if text.ends_with("...") || text.ends_with('…') {
                sink.unknown(
                    number,
                    &format!("{name}: {text}"),
                    "cut at the width of the table: print it with Format-List",
                );
            } else {
                object.push(Property { name: name.clone(), text, line: number });
            }
        }
        emit(&object, command, sink);
        at += 1;
    }
    at
}

/// The settings of an object.
fn emit(object: &[Property], command: Option<Object>, sink: &mut Sink<'_>) {
    let has = |known: &[&str]| {
        object
            .iter()
            .any(|property| known.iter().any(|name| name.eq_ignore_ascii_case(&property.name)))
    };
    let line = object.first().map_or(0, |property| property.line);
    let name = object.iter().find(|property| property.name.eq_ignore_ascii_case("Name"));
    let kind = if has(&SERVER) {
        Some(Object::Server)
    } else if has(&CLIENT) {
        Some(Object::Client)
    } else if has(&SHARE) && name.is_some() {
        Some(Object::Share)
    } else {
        command
    };
    let of = match (kind, name) {
        (Some(Object::Server), _) => SmbObject::Server,
        (Some(Object::Client), _) => SmbObject::Client,
        (Some(Object::Share), Some(name)) if !name.text.is_empty() => {
            SmbObject::Share(name.text.clone())
        }
        _ => {
            let text: Vec<&str> =
                object.iter().take(5).map(|property| property.name.as_str()).collect();
            let why = "not an object of Get-SmbServerConfiguration, Get-SmbClientConfiguration or Get-SmbShare";
            return sink.unknown(line, &text.join(", "), why);
        }
    };
    for property in object {
        if NOT_SETTINGS.iter().any(|name| name.eq_ignore_ascii_case(&property.name)) {
            let text = format!("{}: {}", property.name, property.text);
            sink.unknown(property.line, &text, "describes the object");
            continue;
        }
        if matches!(of, SmbObject::Share(_)) && property.name.eq_ignore_ascii_case("Name") {
            continue;
        }
        let place = Place::Smb { object: of.clone(), property: property.name.clone() };
        sink.setting(property.line, place, Value::Text(property.text.clone()));
    }
}
