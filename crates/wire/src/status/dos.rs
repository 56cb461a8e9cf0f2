//! SMB1's error classes and codes, sent where the client has not asked for NTSTATUS.
//!
//! MS-CIFS sections 2.2.1.5 and 2.2.2.4; the common codes only.

/// An error class and the code within it; class 0 is success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DosError {
    /// DOS, server, hardware ...
    pub class: u8,
    /// What went wrong.
    pub code: u16,
}

impl DosError {
    /// The error in the status field of an SMB1 header: class, a reserved byte, code.
    #[inline]
    pub fn from_status_field(field: u32) -> DosError {
        DosError { class: field as u8, code: (field >> 16) as u16 }
    }

    /// Whether the operation failed.
    #[inline]
    pub fn is_error(self) -> bool {
        self.class != 0
    }

    /// The name of the class; `None` for an unknown one.
    pub fn class_name(self) -> Option<&'static str> {
        match self.class {
            0x00 => Some("SUCCESS"),
            0x01 => Some("ERRDOS"),
            0x02 => Some("ERRSRV"),
            0x03 => Some("ERRHRD"),
            0x04 => Some("ERRXOS"),
            0xff => Some("ERRCMD"),
            _ => None,
        }
    }

    /// The name of the code within its class; `None` for an unknown one.
    pub fn name(self) -> Option<&'static str> {
        match self.class {
            0x00 => Some("SUCCESS"),
            0x01 => dos(self.code),
            0x02 => server(self.code),
            0x03 => hardware(self.code),
            _ => None,
        }
    }
}

fn dos(code: u16) -> Option<&'static str> {
    Some(match code {
        0x01 => "ERRbadfunc",
        0x02 => "ERRbadfile",
        0x03 => "ERRbadpath",
        0x04 => "ERRnofids",
        0x05 => "ERRnoaccess",
        0x06 => "ERRbadfid",
        0x07 => "ERRbadmcb",
        0x08 => "ERRnomem",
        0x09 => "ERRbadmem",
        0x0a => "ERRbadenv",
        0x0b => "ERRbadformat",
        0x0c => "ERRbadaccess",
        0x0d => "ERRbaddata",
        0x0f => "ERRbaddrive",
        0x10 => "ERRremcd",
        0x11 => "ERRdiffdevice",
        0x12 => "ERRnofiles",
        0x1f => "ERRgeneral",
        0x20 => "ERRbadshare",
        0x21 => "ERRlock",
        0x26 => "ERReof",
        0x32 => "ERRunsup",
        0x43 => "ERRnosuchshare",
        0x50 => "ERRfilexists",
        0x57 => "ERRinvalidparam",
        0x7a => "ERRinsufficientbuffer",
        0x7b => "ERRinvalidname",
        0x7c => "ERRunknownlevel",
        0x9e => "ERRnotlocked",
        0xe6 => "ERRbadpipe",
        0xe7 => "ERRpipebusy",
        0xe8 => "ERRpipeclosing",
        0xe9 => "ERRnotconnected",
        0xea => "ERRmoredata",
        _ => return None,
    })
}

fn server(code: u16) -> Option<&'static str> {
    Some(match code {
        0x0001 => "ERRerror",
        0x0002 => "ERRbadpw",
        0x0003 => "ERRbadpath",
        0x0004 => "ERRaccess",
        0x0005 => "ERRinvtid",
        0x0006 => "ERRinvnetname",
        0x0007 => "ERRinvdevice",
        0x0031 => "ERRqfull",
        0x0032 => "ERRqtoobig",
        0x0033 => "ERRqeof",
        0x0034 => "ERRinvpfid",
        0x0040 => "ERRsmbcmd",
        0x0041 => "ERRsrverror",
        0x0043 => "ERRfilespecs",
        0x0045 => "ERRbadpermits",
        0x0047 => "ERRsetattrmode",
        0x0051 => "ERRpaused",
        0x0052 => "ERRmsgoff",
        0x0053 => "ERRnoroom",
        0x0057 => "ERRrmuns",
        0x0058 => "ERRtimeout",
        0x0059 => "ERRnoresource",
        0x005a => "ERRtoomanyuids",
        0x005b => "ERRbaduid",
        0x00fa => "ERRusempx",
        0x00fb => "ERRusestd",
        0x00fc => "ERRcontmpx",
        0x08bf => "ERRaccountExpired",
        0x08c0 => "ERRbadClient",
        0x08c1 => "ERRbadLogonTime",
        0x08c2 => "ERRpasswordExpired",
        0xffff => "ERRnosupport",
        _ => return None,
    })
}

fn hardware(code: u16) -> Option<&'static str> {
    Some(match code {
        0x13 => "ERRnowrite",
        0x14 => "ERRbadunit",
        0x15 => "ERRnotready",
        0x16 => "ERRbadcmd",
        0x17 => "ERRdata",
        0x18 => "ERRbadreq",
        0x19 => "ERRseek",
        0x1a => "ERRbadmedia",
        0x1b => "ERRbadsector",
        0x1c => "ERRnopaper",
        0x1d => "ERRwrite",
        0x1e => "ERRread",
        0x1f => "ERRgeneral",
        0x20 => "ERRbadshare",
        0x21 => "ERRlock",
        0x22 => "ERRwrongdisk",
        0x23 => "ERRFCBUnavail",
        0x24 => "ERRsharebufexc",
        0x27 => "ERRdiskfull",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_status_field_and_names_it() {
        let error = DosError::from_status_field(u32::from_le_bytes([1, 0, 2, 0]));
        assert_eq!(error, DosError { class: 1, code: 2 });
        assert_eq!(error.class_name(), Some("ERRDOS"));
        assert_eq!(error.name(), Some("ERRbadfile"));
        assert!(error.is_error());
        assert!(!DosError::default().is_error());
        let server = DosError { class: 2, code: 0x5b };
        assert_eq!(server.name(), Some("ERRbaduid"));
        assert_eq!(DosError { class: 9, code: 1 }.class_name(), None);
        assert_eq!(DosError { class: 1, code: 999 }.name(), None);
    }
}
