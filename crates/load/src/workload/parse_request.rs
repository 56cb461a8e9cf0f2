//! Reads one request from TOML: the key that names it determines its kind.

use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType, SecurityInformation};
use smbscope_wire::smb2::lease::LeaseState;
use smbscope_wire::smb2::notify::CompletionFilter;

use super::building::{Building, Read, bits, block, code, status, unknown};
use super::error::WorkloadError;
use super::model::{
    ChangeNotify, Create, Expect, Ioctl, Length, Lock, LockKind, Op, QueryDirectory, QueryInfo,
    Request, SetInfo, Slot, Times, Transfer,
};
use super::table::{At, Table, quoted};
use super::words;

const KINDS: [&str; 13] = [
    "create",
    "close",
    "read",
    "write",
    "flush",
    "lock",
    "unlock",
    "ioctl",
    "query_directory",
    "query_info",
    "set_info",
    "change_notify",
    "cancel",
];

/// Reads a request and tracks its handle.
pub(super) fn request(table: &Table<'_>, building: &mut Building<'_>) -> Read<Request> {
    let mut present = KINDS.into_iter().filter(|kind| table.has_key(kind));
    let Some(kind) = present.next() else {
        let error = match table
            .entries()
            .into_iter()
            .find(|(key, _)| key.value != "action" && key.value != "wait")
        {
            Some((key, _)) => table.source.error(key.span, "this step names no request"),
            None => table.error("this step names no request"),
        };
        return Err(error.help(format!("there is {}", quoted(&KINDS))));
    };
    if let Some(second) = present.next() {
        let text = format!("`{kind}` and `{second}` in one request");
        return Err(table
            .source
            .error(table.key_span(second), text)
            .help("make it a step of its own, or a compound"));
    }
    let target = table.need_text(kind)?;
    let expect = expect(table)?;
    match kind {
        "create" => create(table, building, &target, expect),
        "cancel" => {
            let notification = building.tracker.cancel(table.source, &target)?;
            if table.has_key("expect") {
                let error =
                    table.source.error(table.key_span("expect"), "a Cancel is not answered");
                return Err(error.help("its notification is: give that STATUS_CANCELLED"));
            }
            Ok(Request {
                op: Op::Cancel { notification },
                slot: None,
                expect,
                collapse: false,
                lease: None,
            })
        }
        "close" => {
            let post_query = table.flag("post_query")?;
            let (slot, mark) = building.tracker.close(table.source, &target)?;
            let op = Op::Close { post_query };
            Ok(Request { op, slot: Some(slot), expect, collapse: mark.collapse, lease: mark.lease })
        }
        _ => on_handle(table, building, kind, &target, expect),
    }
}

fn on_handle(
    table: &Table<'_>,
    building: &mut Building<'_>,
    kind: &str,
    target: &At<&str>,
    expect: Expect,
) -> Read<Request> {
    let source = table.source;
    let slot = building.tracker.used(source, target)?;
    let own_lease = kind == "change_notify" && table.flag("dirlease")?;
    let mark = building.tracker.mark(slot);
    let lease = if kind == "query_directory" || own_lease { mark.lease } else { None };
    if own_lease && lease.is_none() {
        let error = source.error(
            table.key_span("dirlease"),
            format!("the Create of `{}` has no lease", target.value),
        );
        return Err(error.help("give that Create `dirlease = \"PATH\"`"));
    }
    if lease.is_none() {
        building.tracker.sent_anyway(source, target, kind)?;
    }
    let op = match kind {
        "read" => Op::Read(transfer(table, building, false)?),
        "write" => Op::Write(transfer(table, building, true)?),
        "flush" => Op::Flush,
        "lock" | "unlock" => Op::Lock(lock(table, kind == "unlock")?),
        "ioctl" => Op::Ioctl(ioctl(table)?),
        "query_directory" => Op::QueryDirectory(query_directory(table, building)?),
        "query_info" => Op::QueryInfo(query_info(table)?),
        "set_info" => Op::SetInfo(set_info(table, building)?),
        _ => Op::ChangeNotify(change_notify(table, building, slot, expect, own_lease)?),
    };
    Ok(Request { op, slot: Some(slot), expect, collapse: false, lease })
}

fn expect(table: &Table<'_>) -> Read<Expect> {
    let Some(names) = table.texts("expect")? else { return Ok(Expect::SUCCESS) };
    let statuses =
        names.value.iter().map(|name| status(table.source, name)).collect::<Read<Vec<_>>>()?;
    Expect::any_of(&statuses)
        .ok_or_else(|| table.source.error(names.span, "`expect` has from one to four statuses"))
}

fn create(
    table: &Table<'_>,
    building: &mut Building<'_>,
    path: &At<&str>,
    expect: Expect,
) -> Read<Request> {
    let source = table.source;
    let create = Create {
        path: building.path(source, path, true)?,
        access: AccessMask(bits(table, "access", words::ACCESS, 0x0010_0080)?),
        disposition: CreateDisposition(code(table, "disposition", words::DISPOSITIONS, 1)?),
        options: CreateOptions(bits(table, "options", words::OPTIONS, 0)?),
        share: ShareAccess(bits(table, "share", words::SHARE, 7)?),
        attributes: FileAttributes(bits(table, "attributes", words::ATTRIBUTES, 0)?),
        oplock: OplockLevel(code(table, "oplock", words::OPLOCKS, 0)? as u8),
        lease: LeaseState(code(table, "lease", words::LEASES, 0)?),
    };
    let collapse = table.flag("collapse")?;
    let lease = match table.text("dirlease")? {
        None => None,
        Some(at) => {
            let path = building.path(source, &at, true)?;
            building.leases.push((path, at.span));
            Some(path)
        }
    };
    let handle = table.text("handle")?;
    let opens = expect.statuses().iter().any(|status| !status.is_error());
    let slot = match handle {
        Some(handle) if expect.fails() => {
            let error = source.error(handle.span, "a Create that fails opens no handle");
            return Err(error.help("remove `handle`, or expect STATUS_SUCCESS"));
        }
        Some(handle) => {
            Some(building.tracker.open(source, &handle, collapse, lease, create.path)?)
        }
        None if opens => {
            let error = table.error("a Create that succeeds needs a name for its handle");
            return Err(error.help("write `handle = \"NAME\"`, or `expect` the error"));
        }
        None => None,
    };
    if opens && expect.statuses().iter().any(|status| status.is_error()) {
        let error = source
            .error(table.key_span("expect"), "a Create either opens or fails, always the same way");
        return Err(error.help("expect either successes or errors"));
    }
    Ok(Request { op: Op::Create(create), slot, expect, collapse, lease })
}

fn transfer(table: &Table<'_>, building: &Building<'_>, write: bool) -> Read<Transfer> {
    let file = table.need_text("file")?;
    Ok(Transfer {
        file: building.pick(table.source, &file)?,
        offset_bytes: table.bytes("offset")?.map_or(0, |at| at.value),
        limit_bytes: table.bytes("bytes")?.map(|at| at.value),
        block_bytes: block(table.bytes("block")?, table.source, building.defaults.block_bytes)?,
        depth: table
            .number("depth", 1..1025)?
            .map_or(building.defaults.depth, |depth| depth.value as u16),
        write_through: write && table.flag("write_through")?,
        unbuffered: table.flag("unbuffered")?,
    })
}

fn lock(table: &Table<'_>, unlock: bool) -> Read<Lock> {
    let offset_bytes = table.bytes("offset")?.ok_or_else(|| table.missing("offset"))?.value;
    let length_bytes = table.bytes("bytes")?.ok_or_else(|| table.missing("bytes"))?.value;
    if unlock {
        return Ok(Lock {
            offset_bytes,
            length_bytes,
            kind: LockKind::Unlock,
            fail_immediately: false,
        });
    }
    let kind = if table.flag("shared")? { LockKind::Shared } else { LockKind::Exclusive };
    Ok(Lock { offset_bytes, length_bytes, kind, fail_immediately: table.flag("fail_immediately")? })
}

fn ioctl(table: &Table<'_>) -> Read<Ioctl> {
    let name = table.need_text("code")?;
    let named = words::FSCTLS.iter().find(|code| code.name() == Some(name.value));
    let Some(&code) = named else {
        let known: Vec<&str> = words::FSCTLS.iter().filter_map(|code| code.name()).collect();
        return unknown(table.source, name.span, "control code", name.value, &known);
    };
    Ok(Ioctl { code, output_bytes: output(table, 16_384)? })
}

fn query_directory(table: &Table<'_>, building: &mut Building<'_>) -> Read<QueryDirectory> {
    let class = match table.text("class")? {
        None => FileInfoClass::ID_BOTH_DIRECTORY,
        Some(name) => match words::LISTINGS.iter().find(|class| class.name() == Some(name.value)) {
            Some(&class) => class,
            None => {
                let known: Vec<&str> =
                    words::LISTINGS.iter().filter_map(|class| class.name()).collect();
                return unknown(table.source, name.span, "class of a listing", name.value, &known);
            }
        },
    };
    let pattern = table.text("pattern")?.unwrap_or(At { value: "*", span: table.span.clone() });
    Ok(QueryDirectory {
        class,
        pattern: building.path(table.source, &pattern, false)?,
        restart: table.flag("restart")?,
        single: table.flag("single")?,
        output_bytes: output(table, 65_536)?,
    })
}

fn query_info(table: &Table<'_>) -> Read<QueryInfo> {
    let source = table.source;
    let class = table.text("class")?;
    let parts = table.has_key("security");
    let security = SecurityInformation(bits(table, "security", words::SECURITY, 0)?);
    let (info_type, class, room) = match (class, parts) {
        (None, true) => (InfoType::SECURITY, 0, 65_536),
        (Some(class), true) => {
            return Err(source
                .error(class.span, "either a `class` or the parts of the `security` descriptor"));
        }
        (None, false) => return Err(table.missing("class")),
        (Some(name), false) => {
            let file =
                words::FILE_QUERIES.iter().find(|(class, _)| class.name() == Some(name.value));
            let fs = words::FS_QUERIES.iter().find(|(class, _)| class.name() == Some(name.value));
            match (file, fs) {
                (Some(&(class, room)), _) => (InfoType::FILE, class.0, room),
                (_, Some(&(class, room))) => (InfoType::FILESYSTEM, class.0, room),
                _ => {
                    let files = words::FILE_QUERIES.iter().filter_map(|(class, _)| class.name());
                    let fs = words::FS_QUERIES.iter().filter_map(|(class, _)| class.name());
                    let known: Vec<&str> = files.chain(fs).collect();
                    return unknown(source, name.span, "class of a query", name.value, &known);
                }
            }
        }
    };
    Ok(QueryInfo { info_type, class, security, output_bytes: output(table, room)? })
}

fn set_info(table: &Table<'_>, building: &mut Building<'_>) -> Read<SetInfo> {
    let source = table.source;
    let class = table.need_text("class")?;
    const KNOWN: [&str; 5] = [
        "FileDispositionInformation",
        "FileRenameInformation",
        "FileBasicInformation",
        "FileEndOfFileInformation",
        "FileAllocationInformation",
    ];
    match class.value {
        "FileDispositionInformation" => Ok(SetInfo::Disposition { delete: table.flag("delete")? }),
        "FileRenameInformation" => {
            let to = table.need_text("to")?;
            Ok(SetInfo::Rename {
                to: building.path(source, &to, true)?,
                replace: table.flag("replace")?,
            })
        }
        "FileBasicInformation" => {
            let times = match table.text("times")? {
                None => Times::Keep,
                Some(At { value: "keep", .. }) => Times::Keep,
                Some(At { value: "freeze", .. }) => Times::Freeze,
                Some(name) => Times::Of(building.pick(source, &name).map_err(|error| {
                    error.help(
                        "`times` is `keep`, `freeze` or the name of a file whose times are set",
                    )
                })?),
            };
            let attributes = FileAttributes(bits(table, "attributes", words::ATTRIBUTES, 0)?);
            Ok(SetInfo::Basic { times, attributes })
        }
        "FileEndOfFileInformation" => Ok(SetInfo::EndOfFile(length(table, building)?)),
        "FileAllocationInformation" => Ok(SetInfo::Allocation(length(table, building)?)),
        _ => unknown(source, class.span, "class of a change", class.value, &KNOWN),
    }
}

fn length(table: &Table<'_>, building: &Building<'_>) -> Read<Length> {
    match (table.text("file")?, table.bytes("bytes")?) {
        (Some(file), None) => Ok(Length::Of(building.pick(table.source, &file)?)),
        (None, Some(bytes)) => Ok(Length::Bytes(bytes.value)),
        _ => Err(table.error("a length needs either `file` (its size) or `bytes`")),
    }
}

fn change_notify(
    table: &Table<'_>,
    building: &mut Building<'_>,
    slot: Slot,
    expect: Expect,
    leased: bool,
) -> Read<ChangeNotify> {
    let name = table.need_text("notification")?;
    let filter = CompletionFilter(bits(table, "filter", words::FILTERS, 0)?);
    if filter.0 == 0 {
        let known: Vec<&str> = words::FILTERS.iter().map(|&(name, _)| name).collect();
        return Err(table.missing("filter").help(format!("there is {}", quoted(&known))));
    }
    let tree = table.flag("tree")?;
    let notification = building.tracker.notify(table.source, &name, slot, expect, leased)?;
    Ok(ChangeNotify { notification, filter, tree, output_bytes: output(table, 32_768)? })
}

fn output(table: &Table<'_>, default: u32) -> Result<u32, WorkloadError> {
    match table.bytes("output")? {
        None => Ok(default),
        Some(At { value: bytes @ 0..=8_388_608, .. }) => Ok(bytes as u32),
        Some(At { span, .. }) => Err(table.source.error(span, "`output` is at most 8 MiB")),
    }
}
