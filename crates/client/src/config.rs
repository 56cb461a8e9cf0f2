//! How a client connects and what it requests.

use std::sync::Arc;
use std::time::Duration;

use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};

use super::kerberos::Kerberos;

/// Where the share is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host name or address.
    pub host: String,
    /// TCP port; 445 by default.
    pub port: u16,
    /// The share's name.
    pub share: String,
    /// Folder of the share that contains the users' folders; empty for its root.
    pub folder: String,
}

/// Why a target is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid share `{given}`: {reason}; expected //HOST[:PORT]/SHARE[/FOLDER], for example //fs.example/home"
)]
pub struct TargetError {
    given: String,
    reason: &'static str,
}

impl Target {
    /// Reads `//host[:port]/share[/folder...]`, with slashes or backslashes; an IPv6 address
    /// is written in brackets.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let error = |reason| TargetError { given: text.to_owned(), reason };
        let plain = text.replace('\\', "/");
        let rest = plain.strip_prefix("smb:").unwrap_or(&plain);
        let rest = rest.strip_prefix("//").ok_or_else(|| error("it does not begin with //"))?;
        let (place, path) = rest.split_once('/').ok_or_else(|| error("it names no share"))?;
        let (host, port) = match place.strip_prefix('[') {
            Some(bracketed) => {
                let (host, rest) =
                    bracketed.split_once(']').ok_or_else(|| error("a bracket is not closed"))?;
                (host, rest.strip_prefix(':'))
            }
            None => match place.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(error("write an IPv6 address in brackets"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        if host.is_empty() {
            return Err(error("it names no host"));
        }
        let port = match port {
            Some(port) => {
                port.parse().map_err(|_| error("the port is not a number up to 65535"))?
            }
            None => 445,
        };
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let share = parts.next().ok_or_else(|| error("it names no share"))?;
        let folder = parts.collect::<Vec<_>>().join("\\");
        Ok(Target { host: host.to_owned(), port, share: share.to_owned(), folder })
    }

    /// The share as `\\host\share`.
    pub fn unc(&self) -> String {
        format!("\\\\{}\\{}", self.host, self.share)
    }

    /// Host and port.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// What the client does about signing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signing {
    /// Signs when the server demands it.
    #[default]
    Auto,
    /// Signs everything.
    Required,
    /// Signs only what every session must sign (the tree connect of 3.1.1).
    Off,
}

/// Which related requests the client sends as compounds; the others it sends one by one, each after the reply
/// to the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compounds {
    /// All.
    #[default]
    All,
    /// Those that begin with a Create: impacket and ksmbd remember only the file that a Create of the same
    /// compound opened.
    Opening,
    /// None.
    Off,
}

/// What the client does about encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Encrypts when server or share demand it.
    #[default]
    Auto,
    /// Encrypts everything; an error when the server cannot.
    Required,
    /// Offers no cipher.
    Off,
}

/// Everything that shapes a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// Dialects offered, in ascending order.
    pub dialects: Vec<Dialect>,
    /// Signing.
    pub signing: Signing,
    /// Signing algorithms offered in 3.1.1, the preferred first.
    pub signing_algorithms: Vec<SigningId>,
    /// Encryption.
    pub encryption: Encryption,
    /// Ciphers offered, the preferred first.
    pub ciphers: Vec<CipherId>,
    /// Whether to request leases on files and directories; otherwise oplocks.
    pub leases: bool,
    /// Whether opens with a lease or oplock request to survive the connection.
    pub durable: bool,
    /// Which related requests are sent as compounds (MS-SMB2 section 3.2.4.1.4).
    pub compounds: Compounds,
    /// TCP connections of each session.
    pub channels: u16,
    /// Credits that the client tries to hold on each connection.
    pub credits: u16,
    /// Time for a TCP connection.
    pub connect_timeout: Duration,
    /// After this time without an answer of the peer's TCP a connection is lost, and its TCP state is sampled;
    /// `None`: the system decides, and nothing is sampled. For few connections with much data.
    pub path_timeout: Option<Duration>,
    /// How users get tickets; `None`: they log on with NTLM.
    pub kerberos: Option<Arc<Kerberos>>,
    /// Artificial delay added to every reply; [`Duration::ZERO`] for none.
    pub delay: Duration,
}

impl Config {
    /// The authentication mechanism, as the table of sessions names it.
    pub fn mechanism(&self) -> &'static str {
        if self.kerberos.is_some() { "Kerberos" } else { "NTLMSSP" }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            dialects: vec![
                Dialect::SMB_2_0_2,
                Dialect::SMB_2_1,
                Dialect::SMB_3_0,
                Dialect::SMB_3_0_2,
                Dialect::SMB_3_1_1,
            ],
            signing: Signing::Auto,
            signing_algorithms: vec![
                SigningId::AES_GMAC,
                SigningId::AES_CMAC,
                SigningId::HMAC_SHA256,
            ],
            encryption: Encryption::Auto,
            ciphers: vec![
                CipherId::AES_128_GCM,
                CipherId::AES_128_CCM,
                CipherId::AES_256_GCM,
                CipherId::AES_256_CCM,
            ],
            leases: true,
            durable: false,
            compounds: Compounds::default(),
            channels: 1,
            credits: 64,
            connect_timeout: Duration::from_secs(10),
            path_timeout: None,
            kerberos: None,
            delay: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let target = Target::parse("//127.0.0.1:4450/home/a/b").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("127.0.0.1", 4450));
        assert_eq!((target.share.as_str(), target.folder.as_str()), ("home", "a\\b"));
        assert_eq!(target.unc(), "\\\\127.0.0.1\\home");
        let target = Target::parse("\\\\fs\\home").unwrap();
        assert_eq!((target.host.as_str(), target.port, target.folder.as_str()), ("fs", 445, ""));
        let target = Target::parse("smb://[::1]:4450/x/").unwrap();
        assert_eq!((target.host.as_str(), target.address().as_str()), ("::1", "[::1]:4450"));
    }

    #[test]
    fn an_invalid_target_is_explained() {
        for (text, reason) in [
            ("home", "//"),
            ("//fs", "share"),
            ("//fs/", "share"),
            ("///home", "host"),
            ("//fs:x/home", "port"),
            ("//::1/home", "brackets"),
            ("//[::1/home", "bracket"),
        ] {
            let error = Target::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
