//! Providers of Windows whose events say something about SMB or CPUs, and GUIDs as logs have them.
//!
//! The GUIDs are those of the providers' manifests.

use std::fmt;

/// A GUID in the order of bytes of a log: its first three parts are little endian.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The GUID whose usual text has these digits, without braces and hyphens.
    pub const fn from_digits(digits: u128) -> Guid {
        let [a, b, c, d, e, f, g, h, rest @ ..] = digits.to_be_bytes();
        let [i, j, k, l, m, n, o, p] = rest;
        Guid([d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p])
    }

    /// Whether it is the nil GUID.
    pub fn is_nil(self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [d, c, b, a, f5, e, h, g, i, j, rest @ ..] = self.0;
        for byte in [a, b, c, d] {
            write!(f, "{byte:02x}")?;
        }
        write!(f, "-{e:02x}{f5:02x}-{g:02x}{h:02x}-{i:02x}{j:02x}-")?;
        rest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A provider whose events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// Microsoft-Windows-NDIS-PacketCapture, which `netsh trace start capture=yes` records.
    PacketCapture,
    /// Microsoft-Windows-PktMon, which `pktmon start --capture` records.
    PacketMonitor,
    /// Microsoft-Windows-SMBServer.
    SmbServer,
    /// Microsoft-Windows-SMBClient.
    SmbClient,
    /// Microsoft-Windows-Kernel-Processor-Power.
    ProcessorPower,
}

impl Provider {
    /// All of them.
    pub const ALL: [Provider; 5] = [
        Provider::PacketCapture,
        Provider::PacketMonitor,
        Provider::SmbServer,
        Provider::SmbClient,
        Provider::ProcessorPower,
    ];

    /// Its GUID.
    pub const fn guid(self) -> Guid {
        Guid::from_digits(match self {
            Provider::PacketCapture => 0x2ed6006e_4729_4609_b423_3ee7bcd678ef,
            Provider::PacketMonitor => 0x4d4f80d9_c8bd_4d73_bb5b_19c90402c5ac,
            Provider::SmbServer => 0xd48ce617_33a2_4bc3_a5c7_11aa4f29619e,
            Provider::SmbClient => 0x988c59c5_0a1c_45b6_a555_0c62276e327d,
            Provider::ProcessorPower => 0x0f67e49f_fe51_4e9f_b490_6f2948cc6027,
        })
    }

    /// The provider of that GUID.
    #[inline]
    pub fn from_guid(guid: &[u8; 16]) -> Option<Provider> {
        Provider::ALL.into_iter().find(|provider| provider.guid().0 == *guid)
    }

    /// Its name in the table `server_events`.
    pub fn short(self) -> &'static str {
        self.name().trim_start_matches("Microsoft-Windows-")
    }

    /// Its name in Windows.
    pub fn name(self) -> &'static str {
        match self {
            Provider::PacketCapture => "Microsoft-Windows-NDIS-PacketCapture",
            Provider::PacketMonitor => "Microsoft-Windows-PktMon",
            Provider::SmbServer => "Microsoft-Windows-SMBServer",
            Provider::SmbClient => "Microsoft-Windows-SMBClient",
            Provider::ProcessorPower => "Microsoft-Windows-Kernel-Processor-Power",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_are_written_as_windows_writes_them() {
        let guid = Provider::SmbServer.guid();
        assert_eq!(guid.to_string(), "d48ce617-33a2-4bc3-a5c7-11aa4f29619e");
        assert_eq!(guid.0[..8], [0x17, 0xe6, 0x8c, 0xd4, 0xa2, 0x33, 0xc3, 0x4b]);
        assert_eq!(guid.0[8..], [0xa5, 0xc7, 0x11, 0xaa, 0x4f, 0x29, 0x61, 0x9e]);
        assert!(Provider::ALL.iter().all(|one| Provider::from_guid(&one.guid().0) == Some(*one)));
        assert_eq!(Provider::from_guid(&[0; 16]), None);
        assert!(Guid::default().is_nil() && !guid.is_nil());
    }
}
