//! The options of a lab: plain data with defaults, names for a command line, and the checks that need
//! no Samba.
//!
//! How options become smb.conf is in `conf`. Names follow MS-SMB2 and Wireshark, not smb.conf.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use super::error::LabError;
use crate::wan;

/// The most users of a lab: the numbers fill the five digits of `user00001`.
pub const USERS_MAX: u32 = 99_999;

/// The workgroup, which clients see as the users' domain.
pub(super) const WORKGROUP: &str = "LAB";

/// A requested link.
#[derive(Clone, Debug)]
pub struct Line {
    /// The properties of the link.
    pub options: wan::Options,
    /// Prefix of the namespaces' names.
    pub name: String,
    /// The command that forwards between the interfaces [`ENDS`](crate::wan::netns::ENDS) of the
    /// namespace in which it is started, until SIGTERM.
    pub forwarder: Vec<OsString>,
}

impl Line {
    /// The namespace of the server.
    pub(super) fn server(&self) -> String {
        format!("{}-server", self.name)
    }
}

/// The options of a lab. `Options::default()` is a lab as a user would start it: 100 users, Samba's own
/// settings for everything else.
#[derive(Clone)]
pub struct Options {
    /// smbd, or a folder that contains `bin/smbd` or `sbin/smbd`; `None`: the system's.
    pub samba: Option<PathBuf>,
    /// The lab's own folder, new or empty; `None`: [`super::default_dir`].
    pub dir: Option<PathBuf>,
    /// TCP port; `None`: a free one.
    pub port: Option<u16>,
    /// Name of the share.
    pub share: String,
    /// Users `user00001` to `user{users:05}`.
    pub users: u32,
    /// System user whose rights all users get; `None`: the user who starts the lab, `nobody` for root.
    pub owner: Option<String>,
    /// The users' password; `None`: a random one.
    pub password: Option<String>,
    /// Whether messages are signed.
    pub signing: Signing,
    /// Signing algorithms that the server offers, the preferred first; empty: Samba's default.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether messages are encrypted.
    pub encryption: Encryption,
    /// Ciphers that the server offers, the preferred first; empty: Samba's default.
    pub ciphers: Vec<Cipher>,
    /// The oldest dialect that the server accepts.
    pub dialect_min: Dialect,
    /// The newest dialect that the server accepts.
    pub dialect_max: Dialect,
    /// Oplocks; `None`, here and below: Samba's default.
    pub oplocks: Option<bool>,
    /// Leases on files.
    pub leases: Option<bool>,
    /// Leases on directories (Samba 4.22 or later).
    pub directory_leases: Option<bool>,
    /// Several connections of one session.
    pub multichannel: Option<bool>,
    /// Durable handles.
    pub durable: Option<bool>,
    /// Reads and writes in threads of smbd's pool.
    pub aio: Option<bool>,
    /// The most connections; more are refused.
    pub connections_most: Option<u32>,
    /// Samba's log level, 0 to 10.
    pub log_level: u8,
    /// More lines of smb.conf: name and value.
    pub set: Vec<(String, String)>,
    /// Address to listen on: one of the loopback interface, or one inside `enter`.
    pub address: IpAddr,
    /// Entries of `interfaces` instead of `address` alone: more addresses, `IP;speed=...,capability=RSS`.
    pub interfaces: Vec<String>,
    /// Command that runs its arguments in another environment (`nsenter -t PID -n`): it starts smbd in
    /// an existing network namespace.
    pub enter: Vec<OsString>,
    /// A simulated link between clients and server, each in its own network namespace: `address` is
    /// then the link's far end (root only).
    pub line: Option<Line>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            samba: None,
            dir: None,
            port: None,
            share: "home".to_owned(),
            users: 100,
            owner: None,
            password: None,
            signing: Signing::Auto,
            signing_algorithms: Vec::new(),
            encryption: Encryption::Off,
            ciphers: Vec::new(),
            dialect_min: Dialect::Smb202,
            dialect_max: Dialect::Smb311,
            oplocks: None,
            leases: None,
            directory_leases: None,
            multichannel: None,
            durable: None,
            aio: None,
            connections_most: None,
            log_level: 1,
            set: Vec::new(),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            interfaces: Vec::new(),
            enter: Vec::new(),
            line: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password stays out of logs and of failed assertions.
        f.debug_struct("Options")
            .field("samba", &self.samba)
            .field("dir", &self.dir)
            .field("port", &self.port)
            .field("share", &self.share)
            .field("users", &self.users)
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Checks everything that can be checked without the machine. `release` is Samba's (major, minor).
    pub(super) fn check(&self, release: (u32, u32)) -> Result<(), LabError> {
        let wrong = |text: String| Err(LabError::Option(text));
        if self.users == 0 || self.users > USERS_MAX {
            return wrong(format!("{} users: 1 to {USERS_MAX} are possible", self.users));
        }
        check_share(&self.share)?;
        if self.dialect_min > self.dialect_max {
            return wrong(format!(
                "the oldest dialect, {}, is newer than the newest, {}",
                self.dialect_min, self.dialect_max
            ));
        }
        if self.directory_leases == Some(true) && release < (4, 22) {
            return wrong(format!(
                "directory leases need Samba 4.22 or later, this is {}.{}: scripts/samba-4.22.sh \
                 DIR unpacks one, then add --samba DIR",
                release.0, release.1
            ));
        }
        if self.leases == Some(true) && self.oplocks == Some(false) {
            return wrong("Samba has no leases without oplocks: leave one of the two out".into());
        }
        let crypts = self.encryption != Encryption::Off || !self.ciphers.is_empty();
        if crypts && self.dialect_max < Dialect::Smb300 {
            return wrong(format!("encryption needs SMB 3.0, not {}", self.dialect_max));
        }
        if self.connections_most == Some(0) {
            return wrong("no connection at all would be allowed: give 1 or more".into());
        }
        if self.log_level > 10 {
            return wrong(format!("log level {}: Samba has 0 to 10", self.log_level));
        }
        match &self.password {
            Some(text) if text.is_empty() || text.chars().count() > 127 => {
                wrong("a password has 1 to 127 characters".into())
            }
            Some(text) if text.chars().any(char::is_control) || text.trim() != text => {
                wrong("the password has a control character, or a space at an end".into())
            }
            _ => Ok(()),
        }
    }
}

fn check_share(name: &str) -> Result<(), LabError> {
    let reserved = ["global", "homes", "printers", "print$", "ipc$"];
    // MS-FSCC 2.1.6, and names with a special meaning in smb.conf.
    let forbidden = |c: char| c.is_control() || "\"/\\[]:|<>+=;,?*%#'".contains(c);
    let why = if name.is_empty() || name.chars().count() > 80 {
        "it needs 1 to 80 characters"
    } else if name.contains(forbidden) || name.trim() != name {
        "it has a character that share names cannot have"
    } else if reserved.contains(&name.to_lowercase().as_str()) {
        "Samba keeps this name for itself"
    } else {
        return Ok(());
    };
    Err(LabError::Option(format!("share name {name:?}: {why}")))
}

/// Defines an enum whose variants have a name on the command line and a value in smb.conf.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$item:meta])* $variant:ident $text:literal $conf:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$item])* $variant,)+ }

        impl $name {
            /// The names on the command line.
            pub const NAMES: &[&str] = &[$($text),+];

            /// The value in smb.conf.
            pub(super) fn conf(self) -> &'static str {
                match self { $($name::$variant => $conf,)+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<$name, String> {
                match text.to_ascii_lowercase().as_str() {
                    $($text => Ok($name::$variant),)+
                    _ => Err(format!("invalid value {text:?}: expected one of {}", $name::NAMES.join(", "))),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($name::$variant => $text,)+ })
            }
        }
    };
}

choice! {
    /// Whether messages are signed (MS-SMB2 3.3.4.1.1).
    Signing {
        /// Not offered for SMB1. SMB2 cannot refuse signing to a client that requests it.
        Off "off" "disabled",
        /// Offered, for clients that want it.
        Auto "auto" "auto",
        /// Required of every client.
        Required "required" "mandatory",
    }
}

choice! {
    /// An algorithm that signs (MS-SMB2 2.2.3.1.7).
    SigningAlgorithm {
        /// HMAC-SHA256, of SMB 2.0.2 and 2.1.
        HmacSha256 "hmac-sha256" "HMAC-SHA256",
        /// AES-128-CMAC, of SMB 3.0.
        AesCmac "aes-cmac" "AES-128-CMAC",
        /// AES-128-GMAC, of SMB 3.1.1 only.
        AesGmac "aes-gmac" "AES-128-GMAC",
    }
}

choice! {
    /// Whether messages are encrypted (MS-SMB2 3.3.4.1.4).
    Encryption {
        /// Not offered.
        Off "off" "off",
        /// Used with every client that supports it.
        Desired "desired" "desired",
        /// Required of every client.
        Required "required" "required",
    }
}

choice! {
    /// A cipher (MS-SMB2 2.2.3.1.2).
    Cipher {
        /// AES-128-CCM, of SMB 3.0.
        Aes128Ccm "aes-128-ccm" "AES-128-CCM",
        /// AES-128-GCM.
        Aes128Gcm "aes-128-gcm" "AES-128-GCM",
        /// AES-256-CCM.
        Aes256Ccm "aes-256-ccm" "AES-256-CCM",
        /// AES-256-GCM.
        Aes256Gcm "aes-256-gcm" "AES-256-GCM",
    }
}

choice! {
    /// A dialect, the oldest first (MS-SMB2 2.2.3).
    Dialect {
        /// SMB1.
        Smb1 "1.0" "NT1",
        /// SMB 2.0.2.
        Smb202 "2.0.2" "SMB2_02",
        /// SMB 2.1.
        Smb210 "2.1" "SMB2_10",
        /// SMB 3.0.
        Smb300 "3.0" "SMB3_00",
        /// SMB 3.0.2.
        Smb302 "3.0.2" "SMB3_02",
        /// SMB 3.1.1.
        Smb311 "3.1.1" "SMB3_11",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::default();
        change(&mut options);
        options.check((4, 17)).expect_err("to be refused").to_string()
    }

    #[test]
    fn invalid_options_are_refused_with_a_reason() {
        Options::default().check((4, 17)).expect("defaults are fine");
        assert!(complaint(|o| o.users = 0).contains("1 to 99999"));
        assert!(complaint(|o| o.users = 100_000).contains("100000"));
        assert!(complaint(|o| o.directory_leases = Some(true)).contains("4.17"));
        assert!(complaint(|o| o.dialect_max = Dialect::Smb1).contains("1.0"));
        let plain = |o: &mut Options| {
            o.encryption = Encryption::Required;
            o.dialect_max = Dialect::Smb210;
        };
        assert!(complaint(plain).contains("SMB 3.0"));
        assert!(complaint(|o| o.password = Some("a\nb".into())).contains("control"));
        assert!(complaint(|o| o.connections_most = Some(0)).contains('1'));
        let leases = |o: &mut Options| (o.leases, o.oplocks) = (Some(true), Some(false));
        assert!(complaint(leases).contains("oplocks"));
    }

    #[test]
    fn directory_leases_are_for_4_22() {
        let options = Options { directory_leases: Some(true), ..Options::default() };
        options.check((4, 22)).expect("4.22 has them");
        options.check((5, 0)).expect("later too");
    }

    #[test]
    fn share_names_cannot_change_the_configuration() {
        for name in ["", "a]\n[b", "global", "IPC$", "a/b", " a", "%U"] {
            let said = complaint(|o| o.share = name.into());
            assert!(said.contains("share name"), "{said}");
        }
        let options = Options { share: "Überblick 2".into(), ..Options::default() };
        options.check((4, 17)).expect("a name with a space");
    }

    #[test]
    fn the_password_does_not_show() {
        let options = Options { password: Some("hunter2".into()), ..Options::default() };
        assert!(!format!("{options:?}").contains("hunter2"));
    }

    #[test]
    fn names_go_both_ways() {
        for name in Dialect::NAMES {
            assert_eq!(name.parse::<Dialect>().map(|d| d.to_string()).as_deref(), Ok(*name));
        }
        assert_eq!("AES-GMAC".parse(), Ok(SigningAlgorithm::AesGmac));
        assert!("md5".parse::<SigningAlgorithm>().unwrap_err().contains("aes-cmac"));
    }
}
