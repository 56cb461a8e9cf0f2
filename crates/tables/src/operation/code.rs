//! Names for the codes of the operation row, from MS-SMB2, MS-CIFS, MS-FSCC and MS-ERREF. A row
//! keeps the integer, so that unknown codes survive.

use std::borrow::Cow;

use smbscope_wire::smb1::level::{Level, LevelUse};
use smbscope_wire::smb1::nt_transact::NtFunction;
use smbscope_wire::smb1::trans2::Trans2;
use smbscope_wire::smb1::transaction::PipeCommand;
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType, info_class_name};
use smbscope_wire::smb2::tree::ShareType;
use smbscope_wire::{smb1, smb2, status};

use super::Column;

/// The command of either protocol, as kept in the `command` column.
#[inline]
pub fn command(protocol: u8, command: u16) -> u64 {
    u64::from(protocol) << 16 | u64::from(command)
}

/// The names of all commands of SMB1, SMB2 and SMB3, sorted.
pub fn command_names() -> Vec<&'static str> {
    let mut names: Vec<_> = (0..=0xff)
        .flat_map(|code| [smb2::Command(code.into()).name(), smb1::Command(code).name()])
        .flatten()
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The dialect column's code of an SMB2 or SMB3 dialect.
#[inline]
pub fn dialect(dialect: smb2::Dialect) -> u64 {
    u64::from(dialect.0)
}

/// SMB1 dialect strings (MS-CIFS section 1.7 and 3.2.4.2.2), oldest first.
pub const SMB1_DIALECTS: [&str; 9] = [
    "SMB1",
    "PC NETWORK PROGRAM 1.0",
    "MICROSOFT NETWORKS 1.03",
    "MICROSOFT NETWORKS 3.0",
    "LANMAN1.0",
    "LM1.2X002",
    "LANMAN2.1",
    "NT LANMAN 1.0",
    "NT LM 0.12",
];

/// The dialect column's code of an SMB1 dialect string; "SMB1" for an unusual one.
pub fn smb1_dialect(name: &str) -> u64 {
    SMB1_DIALECTS.iter().position(|&known| known == name).unwrap_or(0) as u64 | 0x1_0000
}

/// The status column's code of an NTSTATUS.
#[inline]
pub fn status_name(status: u32) -> u64 {
    u64::from(status)
}

/// The status column's code of an SMB1 error in DOS format (not an NTSTATUS): `field` is the four bytes of
/// the header's status, as the row's `status` keeps them (class | code << 16).
#[inline]
pub fn dos_status_name(field: u32) -> u64 {
    DOS_ERROR | u64::from(field)
}

const DOS_ERROR: u64 = 1 << 32;

/// What kind of code a [`detail`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Detail {
    /// FSCTL or IOCTL code (MS-FSCC section 2.3).
    Fsctl = 1,
    /// InfoType in the upper 16 bits, information class in the lower (MS-SMB2 2.2.37).
    Information,
    /// CreateDisposition (MS-SMB2 2.2.13).
    Disposition,
    /// Subcommand of an SMB1 Transaction (MS-CIFS 2.2.5) in the lower 16 bits; the upper 16 bits
    /// say on what: 0 a pipe, 1 a mailslot, 2 a function of `\\PIPE\\LANMAN` (MS-RAP 2.5).
    Transaction,
    /// Subcommand of an SMB1 Transaction2 (upper 16 bits) and its information level (lower; 0: none).
    Transaction2,
    /// Function of an SMB1 NtTransact (MS-CIFS 2.2.7).
    NtTransact,
    /// OplockBreak: 0 oplock notification, 1 lease notification, 2 oplock acknowledgment, 3 lease
    /// acknowledgment.
    Break,
    /// Lock: 0 locks, 1 unlocks, 2 both; the number of ranges if there are several: see [`lock`].
    Lock,
    /// SessionSetup: 1 binds a session to another connection, 0 is a logon.
    SessionSetup,
}

/// The detail column's code.
#[inline]
pub fn detail(kind: Detail, code: u32) -> u64 {
    (kind as u64) << 32 | u64::from(code)
}

/// The oplock columns' code; SMB1 levels are mapped to those of SMB2.
#[inline]
pub fn oplock(level: u8) -> u64 {
    u64::from(level)
}

/// The lease columns' code: the state's bits.
#[inline]
pub fn lease(state: u32) -> u64 {
    u64::from(state & 7)
}

/// The source of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    /// A packet capture.
    Capture = 1,
    /// The probe inside a server.
    Probe,
    /// The load generator.
    Load,
    /// Events that a server writes about itself.
    Events,
}

/// Where a row was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Vantage {
    /// At the client.
    Client = 1,
    /// At the server.
    Server,
    /// Between the two.
    Between,
    /// Inside the server.
    Inside,
}

impl Vantage {
    /// The word in the table.
    pub fn name(self) -> &'static str {
        match self {
            Vantage::Client => "client",
            Vantage::Server => "server",
            Vantage::Between => "between",
            Vantage::Inside => "inside",
        }
    }
}

/// The detail of a Lock: its kind, as [`Detail::Lock`] has it, and the number of its ranges.
pub fn lock(kind: u32, ranges: u32) -> u64 {
    let ranges = if ranges > 1 { ranges.min(0xffff) << 16 } else { 0 };
    detail(Detail::Lock, ranges | kind)
}

/// The text of a code in `column`; unknown codes are written as numbers.
pub fn text(column: Column, code: u64) -> Cow<'static, str> {
    match column {
        Column::command => command_text(code),
        Column::dialect => dialect_text(code),
        Column::status_name if code & DOS_ERROR != 0 => dos_error_text(code as u32),
        Column::status_name => named(status::Status(code as u32).name(), code as u32, 8),
        Column::detail => detail_text(code),
        Column::oplock_requested | Column::oplock_granted => {
            named(smb2::create::OplockLevel(code as u8).name(), code as u32, 2)
        }
        Column::lease_requested | Column::lease_granted => LEASES[(code & 7) as usize].into(),
        Column::source => match code {
            1 => "capture",
            2 => "probe",
            4 => "events",
            _ => "load",
        }
        .into(),
        Column::vantage => match code {
            1 => Vantage::Client.name(),
            2 => Vantage::Server.name(),
            3 => Vantage::Between.name(),
            _ => Vantage::Inside.name(),
        }
        .into(),
        _ => format!("{code}").into(),
    }
}

// Bits of MS-SMB2 2.2.13.2.8 in the usual order, R H W.
const LEASES: [&str; 8] = ["None", "R", "H", "RH", "W", "RW", "HW", "RHW"];

fn named(name: Option<&'static str>, code: u32, digits: usize) -> Cow<'static, str> {
    match name {
        Some(name) => name.into(),
        None => format!("0x{code:0digits$x}").into(),
    }
}

fn command_text(code: u64) -> Cow<'static, str> {
    match code >> 16 {
        1 => named(smb1::Command(code as u8).name(), u32::from(code as u8), 2),
        _ => named(smb2::Command(code as u16).name(), u32::from(code as u16), 4),
    }
}

fn dialect_text(code: u64) -> Cow<'static, str> {
    if code >> 16 == 1 {
        return SMB1_DIALECTS.get((code & 0xffff) as usize).copied().unwrap_or("SMB1").into();
    }
    named(smb2::Dialect(code as u16).name(), code as u32, 4)
}

fn detail_text(code: u64) -> Cow<'static, str> {
    let value = code as u32;
    let (upper, lower) = ((value >> 16) as u16, value as u16);
    match code >> 32 {
        1 => named(smb2::fsctl::Fsctl(value).name(), value, 8),
        2 => match info_class_name(InfoType(upper as u8), lower as u8) {
            Some(name) => name.into(),
            None => format!("0x{upper:02x}/0x{lower:02x}").into(),
        },
        3 => named(smb2::create::CreateDisposition(value).name(), value, 8),
        4 => match upper {
            0 => named(PipeCommand(lower).name(), value, 4),
            1 => "MailslotWrite".into(),
            _ => format!("Rap 0x{lower:04x}").into(),
        },
        5 => transaction2_text(upper, lower),
        6 => named(NtFunction(lower).name(), value, 4),
        7 => match value {
            0 => "Oplock notification",
            1 => "Lease notification",
            2 => "Oplock acknowledgement",
            _ => "Lease acknowledgement",
        }
        .into(),
        8 => {
            let (kind, ranges) = (["Lock", "Unlock", "Lock+Unlock"][lower.min(2) as usize], upper);
            if ranges > 1 { format!("{kind} of {ranges} ranges").into() } else { kind.into() }
        }
        9 => if value == 0 { "Logon" } else { "Bind" }.into(),
        _ => format!("0x{code:x}").into(),
    }
}

fn dos_error_text(field: u32) -> Cow<'static, str> {
    let error = status::DosError::from_status_field(field);
    match (error.name(), error.class_name()) {
        (Some(name), _) => name.into(),
        (None, Some(class)) => format!("{class} 0x{:04x}", error.code).into(),
        (None, None) => format!("0x{field:08x}").into(),
    }
}

fn transaction2_text(subcommand: u16, level: u16) -> Cow<'static, str> {
    let name = named(Trans2(subcommand).name(), u32::from(subcommand), 4);
    if level == 0 {
        return name;
    }
    let used = match Trans2(subcommand) {
        Trans2::FIND_FIRST2 | Trans2::FIND_NEXT2 => LevelUse::Find,
        Trans2::SET_PATH_INFORMATION | Trans2::SET_FILE_INFORMATION => LevelUse::Set,
        Trans2::QUERY_FS_INFORMATION => LevelUse::QueryFs,
        Trans2::SET_FS_INFORMATION => LevelUse::SetFs,
        _ => LevelUse::Query,
    };
    let known = Level(level).name(used).or_else(|| {
        let class = u8::try_from(Level(level).pass_through()?).ok()?;
        match used {
            LevelUse::QueryFs | LevelUse::SetFs => info_class_name(InfoType::FILESYSTEM, class),
            _ => FileInfoClass(class).name(),
        }
    });
    match known {
        Some(level) => format!("{name} {level}").into(),
        None => format!("{name} 0x{level:04x}").into(),
    }
}

/// The kind of a share as the table `trees` names it.
pub fn share_type(kind: ShareType) -> String {
    kind.name().map_or_else(|| format!("0x{:02x}", kind.0), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_survive_as_numbers() {
        assert_eq!(text(Column::command, command(2, 8)), "Read");
        assert_eq!(text(Column::command, command(1, 0x2f)), "WriteAndX");
        assert_eq!(text(Column::command, command(2, 0x77)), "0x0077");
        assert_eq!(text(Column::dialect, 0x0311), "3.1.1");
        assert_eq!(text(Column::dialect, 0x0399), "0x0399");
        assert_eq!(text(Column::dialect, smb1_dialect("NT LM 0.12")), "NT LM 0.12");
        assert_eq!(text(Column::status_name, 0xc000_0034), "STATUS_OBJECT_NAME_NOT_FOUND");
        assert_eq!(text(Column::status_name, 0xc0ff_ffff), "0xc0ffffff");
        assert_eq!(text(Column::lease_granted, lease(5)), "RW");
        assert_eq!(
            text(Column::detail, detail(Detail::Fsctl, 0x0011_c017)),
            "FSCTL_PIPE_TRANSCEIVE"
        );
    }

    #[test]
    fn a_dos_error_is_distinguished_from_an_ntstatus() {
        let name = |field| text(Column::status_name, dos_status_name(field));
        assert_eq!(name(0x0002_0001), "ERRbadfile");
        assert_eq!(name(0x005b_0002), "ERRbaduid");
        assert_eq!(name(0x03e7_0001), "ERRDOS 0x03e7");
        assert_eq!(name(0x0001_0009), "0x00010009");
        assert_eq!(text(Column::status_name, status_name(0x0002_0001)), "0x00020001");
    }

    #[test]
    fn a_transaction_says_on_what() {
        let name = |code| text(Column::detail, detail(Detail::Transaction, code));
        assert_eq!(name(0x26), "TransactNmPipe");
        assert_eq!(name(0x1_0001), "MailslotWrite");
        assert_eq!(name(0x2_0068), "Rap 0x0068");
    }
}
