//! What `Get-SmbServerConfiguration`, `Get-SmbClientConfiguration` and `Get-SmbShare` print: lists (`Name : value`),
//! tables, CSV, JSON of `ConvertTo-Json`, and CliXML.
//!
//! The object follows from properties that only one of the three has; without one of them, from the command above the
//! output. Values are texts as they are printed: `True`, `512`, `AES_128_GCM, AES_128_CCM`. Names of properties are
//! those of MSFT_SmbServerConfiguration, MSFT_SmbClientConfiguration and MSFT_SmbShare.

mod json;

use super::super::setting::{Place, SmbObject, Value};
use super::sink::Sink;
use crate::input::lines::Lines;
use crate::input::powershell::{
    Object, Table, is_clixml, is_csv_heading, is_cut, is_rule, list_line, plain, printed, read_csv,
    read_list,
};

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

/// Words for the numbers that `ConvertTo-Json` writes for enumerations (MSFT_SmbShare).
const ENUMS: [(&str, &[&str]); 5] = [
    ("FolderEnumerationMode", &["AccessBased", "Unrestricted"]),
    ("CachingMode", &["None", "Manual", "Documents", "Programs", "BranchCache", "Unknown"]),
    ("AvailabilityType", &["NonClustered", "Clustered", "ScaleOut", "CSV", "DFS"]),
    ("ShareType", &["FileSystemDirectory", "PrintQueue", "Device", "IPC", "ClusterServer"]),
    ("LeasingMode", &["Full", "Shared", "None"]),
];

/// Whether a text looks like a list, a table or CSV of one of the three.
pub(super) fn is_output(text: &str) -> bool {
    let mut previous = "";
    let is_printed = text.lines().any(|line| {
        let is_list = list_line(line).is_some_and(|(name, _)| is_known(name));
        let is_table = is_rule(line) && previous.split_whitespace().any(is_known);
        previous = line;
        is_list || is_table
    });
    is_printed || is_csv(text)
}

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    if is_clixml(text) {
        return json::read_clixml(text, sink);
    }
    if is_csv(text) {
        let read = read_csv(text, &mut |_, object| {
            emit(&object, None, sink);
            Ok(())
        });
        if let Err(damage) = read {
            sink.damage(damage.line as u64, damage.message);
        }
        return;
    }
    let mut lines = Lines::new(text);
    let mut command = None;
    while let Some(line) = lines.peek() {
        let number = lines.number() as u64;
        if line.trim().is_empty() {
            lines.skip(1);
        } else if list_line(line).is_some() {
            match read_list(&mut lines, "") {
                Ok(object) => emit(&object, command, sink),
                Err(damage) => sink.damage(damage.line as u64, damage.message),
            }
        } else if let Some(named) = command_of(line).filter(|_| is_command(line)) {
            // A command that was copied with its output.
            command = Some(named);
            lines.skip(1);
        } else if let Some((columns, heading_lines)) =
            Table::find(&lines).filter(|_| !is_command(line))
        {
            lines.skip(heading_lines);
            table(&mut lines, &columns, command, sink);
        } else {
            // `PS C:\\> Get-SmbShare`, or a sentence that names it.
            match command_of(line) {
                Some(named) => command = Some(named),
                None if is_command(line) => {
                    sink.unknown(number, line, "a command whose output is not read");
                }
                None => sink.unknown(number, line, "neither a property nor a table"),
            }
            lines.skip(1);
        }
    }
}

/// What a command prints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Server,
    Client,
    Share,
}

fn command_of(line: &str) -> Option<Command> {
    let lower = line.to_ascii_lowercase();
    let found = [
        ("smbserverconfiguration", Command::Server),
        ("smbclientconfiguration", Command::Client),
        ("smbshare", Command::Share),
    ];
    found.into_iter().find_map(|(name, command)| lower.contains(name).then_some(command))
}

fn is_command(line: &str) -> bool {
    line.trim_start().to_ascii_lowercase().starts_with("get-smb")
}

fn is_csv(text: &str) -> bool {
    let all = || SERVER.iter().chain(&CLIENT).chain(&SHARE);
    is_csv_heading(text, |cell| all().any(|known| plain(known) == cell))
}

/// Whether only one of the three has a property.
fn is_known(name: &str) -> bool {
    SERVER.iter().chain(&CLIENT).chain(&SHARE).any(|known| known.eq_ignore_ascii_case(name))
}

/// Reads the rows of a table.
fn table(lines: &mut Lines<'_>, table: &Table, command: Option<Command>, sink: &mut Sink<'_>) {
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty()) {
        let number = lines.number();
        let mut row = table.row(line, number);
        row.properties.retain(|property| {
            let text = property.value.as_str().unwrap_or_default();
            if is_cut(text) {
                sink.unknown(
                    number as u64,
                    &format!("{}: {text}", property.name),
                    "cut at the width of the table: print it with Format-List",
                );
            }
            !is_cut(text)
        });
        emit(&row, command, sink);
        lines.skip(1);
    }
}

/// The settings of an object.
fn emit(object: &Object, command: Option<Command>, sink: &mut Sink<'_>) {
    let has = |known: &[&str]| {
        object
            .properties
            .iter()
            .any(|property| known.iter().any(|name| name.eq_ignore_ascii_case(&property.name)))
    };
    let line = object.properties.first().map_or(0, |property| property.line as u64);
    let name = object.string("name");
    let kind = if has(&SERVER) {
        Some(Command::Server)
    } else if has(&CLIENT) {
        Some(Command::Client)
    } else if has(&SHARE) && name.is_some() {
        Some(Command::Share)
    } else {
        command
    };
    let of = match (kind, name) {
        (Some(Command::Server), _) => SmbObject::Server,
        (Some(Command::Client), _) => SmbObject::Client,
        (Some(Command::Share), Some(name)) if !name.is_empty() => SmbObject::Share(name.to_owned()),
        _ => {
            let names = object.properties.iter().take(5).map(|property| property.name.as_str());
            let why = "not an object of Get-SmbServerConfiguration, Get-SmbClientConfiguration or Get-SmbShare";
            return sink.unknown(line, &names.collect::<Vec<_>>().join(", "), why);
        }
    };
    for property in &object.properties {
        let (name, line) = (&property.name, property.line as u64);
        let words = ENUMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let word = |number| words?.1.get(usize::try_from(number).ok()?).copied();
        let text = printed(&property.value, &word).unwrap_or_else(|| "an object".to_owned());
        if NOT_SETTINGS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            sink.unknown(line, &format!("{name}: {text}"), "describes the object");
        } else if !(matches!(of, SmbObject::Share(_)) && name.eq_ignore_ascii_case("Name")) {
            let place = Place::Smb { object: of.clone(), property: name.clone() };
            sink.setting(line, place, Value::Text(text));
        }
    }
}
