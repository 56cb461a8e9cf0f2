//! Codes of the operation row as text. A row keeps the integer, so that unknown codes survive;
//! here they get their names: MS-SMB2, MS-CIFS, MS-FSCC and MS-ERREF.

use std::borrow::Cow;

use smbscope_wire::smb2;

use crate::operation::Column;

/// The command of either protocol, as kept in the `command` column.
#[inline]
pub fn command(protocol: u8, command: u16) -> u64 {
    u64::from(protocol) << 16 | u64::from(command)
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

/// The dialect column's code of an SMB1 dialect string; "SMB1" when it is none of the usual ones.
pub fn smb1_dialect(name: &str) -> u64 {
    SMB1_DIALECTS
        .iter()
        .position(|&known| known == name)
        .unwrap_or(0) as u64
        | 0x1_0000
}

/// The status column's code of an NTSTATUS.
#[inline]
pub fn status_name(status: u32) -> u64 {
    u64::from(status)
}

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
    /// Subcommand of an SMB1 Transaction (MS-CIFS 2.2.5).
    Transaction,
    /// Subcommand of an SMB1 Transaction2 (upper 16 bits) and its information level (lower; 0: none).
    Transaction2,
    /// Function of an SMB1 NtTransact (MS-CIFS 2.2.7).
    NtTransact,
    /// What an OplockBreak message is: 0 oplock, 1 lease.
    Break,
    /// Lock: 0 locks, 1 unlocks, 2 both.
    Lock,
    /// Unencrypted remainder: 0 = an encrypted message.
    Encrypted,
    /// Bind of a session to a further connection, or a plain logon (0).
    SessionSetup,
}

/// The detail column's code.
#[inline]
pub fn detail(kind: Detail, code: u32) -> u64 {
    (kind as u64) << 32 | u64::from(code)
}

/// The oplock columns' code; SMB1 levels are given as their SMB2 equals.
#[inline]
pub fn oplock(level: u8) -> u64 {
    u64::from(level)
}

/// The lease columns' code: the state's bits.
#[inline]
pub fn lease(state: u32) -> u64 {
    u64::from(state & 7)
}

/// What made a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    /// A packet capture.
    Capture = 1,
    /// The probe inside a server.
    Probe,
    /// The load generator.
    Load,
}

/// Where a row was seen.
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

/// The text of a code in `column`; unknown codes are written as numbers.
pub fn text(column: Column, code: u64) -> Cow<'static, str> {
    match column {
        Column::command => command_text(code),
        Column::dialect => dialect_text(code),
        Column::status_name => named(None, code as u32, 8),
        Column::detail => detail_text(code),
        Column::oplock_requested | Column::oplock_granted => {
            named(smb2::create::OplockLevel(code as u8).name(), code as u32, 2)
        }
        Column::lease_requested | Column::lease_granted => LEASES[(code & 7) as usize].into(),
        Column::source => match code {
            1 => "capture",
            2 => "probe",
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

// Bits of MS-SMB2 2.2.13.2.8 in the order in which people write them.
const LEASES: [&str; 8] = ["None", "R", "H", "RH", "W", "RW", "HW", "RHW"];

fn named(name: Option<&'static str>, code: u32, digits: usize) -> Cow<'static, str> {
    match name {
        Some(name) => name.into(),
        None => format!("0x{code:0digits$x}").into(),
    }
}

fn command_text(code: u64) -> Cow<'static, str> {
    match code >> 16 {
        1 => named(None, u32::from(code as u8), 2),
        _ => named(smb2::Command(code as u16).name(), u32::from(code as u16), 4),
    }
}

fn dialect_text(code: u64) -> Cow<'static, str> {
    if code >> 16 == 1 {
        return SMB1_DIALECTS
            .get((code & 0xffff) as usize)
            .copied()
            .unwrap_or("SMB1")
            .into();
    }
    named(smb2::Dialect(code as u16).name(), code as u32, 4)
}

fn detail_text(code: u64) -> Cow<'static, str> {
    let value = code as u32;
    let (upper, lower) = ((value >> 16) as u16, value as u16);
    match code >> 32 {
        1 => named(None, value, 8),
        2 => match None::<&str> {
            Some(name) => name.into(),
            None => format!("0x{upper:02x}/0x{lower:02x}").into(),
        },
        3 => named(smb2::create::CreateDisposition(value).name(), value, 8),
        4 => named(None, value, 4),
        5 => {
            let subcommand = named(None, u32::from(upper), 4);
            if lower == 0 {
                return subcommand;
            }
            match None::<&str> {
                Some(level) => format!("{subcommand} {level}").into(),
                None => format!("{subcommand} 0x{lower:04x}").into(),
            }
        }
        6 => named(None, value, 4),
        7 => if value == 0 { "Oplock" } else { "Lease" }.into(),
        8 => match value {
            0 => "Lock",
            1 => "Unlock",
            _ => "Lock+Unlock",
        }
        .into(),
        9 => "Encrypted".into(),
        10 => if value == 0 { "Logon" } else { "Bind" }.into(),
        _ => format!("0x{code:x}").into(),
    }
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
        assert_eq!(
            text(Column::dialect, smb1_dialect("NT LM 0.12")),
            "NT LM 0.12"
        );
        assert_eq!(
            text(Column::status_name, 0xc000_0034),
            "STATUS_OBJECT_NAME_NOT_FOUND"
        );
        assert_eq!(text(Column::status_name, 0xc0ff_ffff), "0xc0ffffff");
        assert_eq!(text(Column::lease_granted, lease(5)), "RW");
        assert_eq!(
            text(Column::detail, detail(Detail::Fsctl, 0x0011_c017)),
            "FSCTL_PIPE_TRANSCEIVE"
        );
    }
}
