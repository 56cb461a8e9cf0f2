//! What a live server shows on the wire as settings: [`settings`] of plain fields.
//!
//! MS-SMB2 2.2.4 (Negotiate), 2.2.3.1 (contexts), 2.2.6 (SessionSetup), 2.2.10 (TreeConnect). The caller takes the fields
//! from a capture or from a Negotiate of its own; what was not seen is `None`, and becomes no setting.

use super::super::setting::{Origin, Place, Setting, Value};

/// A server's answers. Numbers are those of the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOnWire {
    /// Name of the capture or of the server.
    pub file: String,
    /// Frame, or offset; 0 for a server that was asked.
    pub position: u64,
    /// `SecurityMode` of the Negotiate response.
    pub security_mode: Option<u16>,
    /// `DialectRevision`.
    pub dialect: Option<u16>,
    /// `Capabilities`.
    pub capabilities: Option<u32>,
    pub max_transact_bytes: Option<u32>,
    pub max_read_bytes: Option<u32>,
    pub max_write_bytes: Option<u32>,
    /// The cipher of SMB2_ENCRYPTION_CAPABILITIES.
    pub cipher: Option<u16>,
    /// The algorithm of SMB2_SIGNING_CAPABILITIES.
    pub signing_algorithm: Option<u16>,
    /// The algorithms of SMB2_COMPRESSION_CAPABILITIES, if that context was there.
    pub compression: Option<Vec<u16>>,
    /// `SessionFlags` of a SessionSetup response.
    pub session_flags: Option<u16>,
    /// Whether the server answered to SMB 1.
    pub accepts_smb1: Option<bool>,
    pub shares: Vec<ShareOnWire>,
}

/// A TreeConnect response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareOnWire {
    pub name: String,
    /// `ShareFlags`.
    pub flags: u32,
    /// `Capabilities`.
    pub capabilities: u32,
}

const SIGNING_ENABLED: u16 = 0x1;
const SIGNING_REQUIRED: u16 = 0x2;
const SESSION_ENCRYPT_DATA: u16 = 0x4;

/// Bits of the capabilities of a Negotiate response.
const CAPABILITIES: [(u32, &str); 8] = [
    (0x01, "Dfs"),
    (0x02, "Leasing"),
    (0x04, "LargeMtu"),
    (0x08, "MultiChannel"),
    (0x10, "PersistentHandles"),
    (0x20, "DirectoryLeasing"),
    (0x40, "EncryptionCapability"),
    (0x80, "Notifications"),
];

/// Bits of `ShareFlags`.
const SHARE_FLAGS: [(u32, &str); 9] = [
    (0x100, "RestrictExclusiveOpens"),
    (0x200, "ForceSharedDelete"),
    (0x400, "AllowNamespaceCaching"),
    (0x800, "AccessBasedEnumeration"),
    (0x1000, "ForceLevelTwoOplock"),
    (0x2000, "HashPublication"),
    (0x8000, "ShareEncryption"),
    (0x10_0000, "ShareCompression"),
    (0x20_0000, "IsolatedTransport"),
];

/// Bits of a share's capabilities.
const SHARE_CAPABILITIES: [(u32, &str); 6] = [
    (0x08, "ShareDfs"),
    (0x10, "ContinuouslyAvailable"),
    (0x20, "ScaleOut"),
    (0x40, "Cluster"),
    (0x80, "Asymmetric"),
    (0x100, "RedirectToOwner"),
];

/// The settings that the answers show. Flags are 0 or 1, dialects their numbers, algorithms their names in the spelling
/// of smb.conf.
pub fn settings(server: &ServerOnWire) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut add = |share: Option<&str>, property: &str, value: Value| {
        let place = Place::Wire { share: share.map(str::to_owned), property: property.to_owned() };
        let origin = Origin { file: server.file.clone(), position: server.position, policy: None };
        settings.push(Setting { place, value, origin });
    };
    let flag = |is_set: bool| Value::Dword(u32::from(is_set));
    if let Some(mode) = server.security_mode {
        add(None, "SigningEnabled", flag(mode & SIGNING_ENABLED != 0));
        add(None, "SigningRequired", flag(mode & SIGNING_REQUIRED != 0));
    }
    if let Some(dialect) = server.dialect {
        add(None, "Dialect", Value::Dword(dialect.into()));
    }
    if let Some(capabilities) = server.capabilities {
        for (bit, name) in CAPABILITIES {
            add(None, name, flag(capabilities & bit != 0));
        }
    }
    let sizes = [
        ("MaxTransactSize", server.max_transact_bytes),
        ("MaxReadSize", server.max_read_bytes),
        ("MaxWriteSize", server.max_write_bytes),
    ];
    for (name, bytes) in sizes {
        if let Some(bytes) = bytes {
            add(None, name, Value::Dword(bytes));
        }
    }
    if let Some(cipher) = server.cipher {
        add(None, "Cipher", named(cipher, cipher_name(cipher)));
    }
    if let Some(algorithm) = server.signing_algorithm.or_else(|| implied_algorithm(server.dialect?))
    {
        add(None, "SigningAlgorithm", named(algorithm, signing_name(algorithm)));
    }
    if let Some(algorithms) = &server.compression {
        let names = algorithms.iter().map(|id| match compression_name(*id) {
            Some(name) => name.to_owned(),
            None => format!("0x{id:04x}"),
        });
        add(None, "Compression", Value::Text(names.collect::<Vec<_>>().join(", ")));
    }
    if let Some(flags) = server.session_flags {
        add(None, "SessionEncryption", flag(flags & SESSION_ENCRYPT_DATA != 0));
    }
    if let Some(accepts) = server.accepts_smb1 {
        add(None, "Smb1", flag(accepts));
    }
    for share in &server.shares {
        let name = Some(share.name.as_str());
        for (bit, property) in SHARE_FLAGS {
            add(name, property, flag(share.flags & bit != 0));
        }
        for (bit, property) in SHARE_CAPABILITIES {
            add(name, property, flag(share.capabilities & bit != 0));
        }
        // The caching mode is in two bits (MS-SMB2 2.2.10).
        let caching = match share.flags & 0x30 {
            0x00 => "Manual",
            0x10 => "Documents",
            0x20 => "Programs",
            _ => "None",
        };
        add(name, "CachingMode", Value::Text(caching.to_owned()));
    }
    settings
}

fn named(id: u16, name: Option<&str>) -> Value {
    name.map_or_else(|| Value::Dword(id.into()), |name| Value::Text(name.to_owned()))
}

fn cipher_name(id: u16) -> Option<&'static str> {
    Some(match id {
        1 => "AES-128-CCM",
        2 => "AES-128-GCM",
        3 => "AES-256-CCM",
        4 => "AES-256-GCM",
        _ => return None,
    })
}

fn signing_name(id: u16) -> Option<&'static str> {
    Some(match id {
        0 => "HMAC-SHA256",
        1 => "AES-128-CMAC",
        2 => "AES-128-GMAC",
        _ => return None,
    })
}

/// The algorithm of a connection without a context of signing (MS-SMB2 3.2.5.2): it follows from the dialect.
fn implied_algorithm(dialect: u16) -> Option<u16> {
    match dialect {
        0x0202 | 0x0210 => Some(0),
        0x0300 | 0x0302 | 0x0311 => Some(1),
        _ => None,
    }
}

fn compression_name(id: u16) -> Option<&'static str> {
    Some(match id {
        0 => "none",
        1 => "LZNT1",
        2 => "LZ77",
        3 => "LZ77+Huffman",
        4 => "Pattern_V1",
        5 => "LZ4",
        _ => return None,
    })
}
