//! What can go wrong between client and server.

use std::io::ErrorKind;

use smbscope_wire::smb2::Command;
use smbscope_wire::status::Status;

/// Why the client cannot continue. An operation's own failure is a status, not an error.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No TCP connection.
    #[error("{server}: cannot connect: {error}{}", connect_hint(.error.kind()))]
    Connect {
        /// The address.
        server: String,
        /// The reason.
        error: std::io::Error,
    },
    /// The connection ended.
    #[error("connection lost: {0}")]
    Lost(std::io::Error),
    /// All connections of the session have ended.
    #[error("the last connection of the session is lost: {0}")]
    AllLost(String),
    /// The server refused a request that everything else depends on.
    #[error("{}: {}", command.name().unwrap_or("request"), status_text(*.status))]
    Refused {
        /// The request.
        command: Command,
        /// The answer.
        status: Status,
    },
    /// The server refused to bind another connection to the session.
    #[error("another connection to the session is refused: {}", bind_problem(*.status, *.encrypted))]
    BindRefused {
        /// The answer to the SessionSetup.
        status: Status,
        /// Whether the session is encrypted.
        encrypted: bool,
    },
    /// The share cannot be connected.
    #[error("{share}: {}", share_problem(*.status))]
    Share {
        /// The share, as `\\\\host\\share`.
        share: String,
        /// The answer to the TreeConnect.
        status: Status,
    },
    /// The logon failed on this side.
    #[error("logon: {0}")]
    Logon(String),
    /// No KDC answered.
    #[error("Kerberos: {0}")]
    Kdc(String),
    /// The server violated the protocol, or supports nothing that the client supports.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The session gets no more connections.
    #[error("{0}")]
    NoMultichannel(String),
    /// A reply whose signature or encryption does not verify.
    #[error("a reply failed verification: {0}")]
    Unverified(&'static str),
    /// No reply in time.
    #[error("no reply within {0:?}")]
    Timeout(std::time::Duration),
}

impl ClientError {
    /// The word under which the error is counted, next to NTSTATUS names.
    pub fn kind(&self) -> &'static str {
        match self {
            ClientError::Connect { .. } => "CONNECT_FAILED",
            ClientError::Lost(_) | ClientError::AllLost(_) => "CONNECTION_LOST",
            ClientError::Refused { .. }
            | ClientError::BindRefused { .. }
            | ClientError::Share { .. } => "REFUSED",
            ClientError::Logon(_) => "LOGON_ERROR",
            ClientError::Kdc(_) => "KDC_UNREACHABLE",
            ClientError::Protocol(_) => "PROTOCOL_ERROR",
            ClientError::NoMultichannel(_) => "NO_MULTICHANNEL",
            ClientError::Unverified(_) => "NOT_VERIFIED",
            ClientError::Timeout(_) => "TIMEOUT",
        }
    }

    /// The value of the column `status_name` of a scenario that failed because of this error.
    pub fn status_name(&self) -> String {
        match self {
            ClientError::Refused { status, .. }
            | ClientError::BindRefused { status, .. }
            | ClientError::Share { status, .. } => status_text(*status),
            other => other.kind().to_owned(),
        }
    }

    /// The status with which the server refused, if it did.
    pub fn status(&self) -> Option<Status> {
        match self {
            ClientError::Refused { status, .. }
            | ClientError::BindRefused { status, .. }
            | ClientError::Share { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Where to look if no connection is made.
fn connect_hint(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ConnectionRefused => {
            "; nothing listens there: is the server running, and is the port right?"
        }
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "; is the address right, and does a firewall let the port through?"
        }
        _ => "",
    }
}

/// Why a connection cannot be bound to a session, and what to do.
fn bind_problem(status: Status, encrypted: bool) -> String {
    let answer = status_text(status);
    match status {
        Status::ACCESS_DENIED if encrypted => format!(
            "{answer}; the session requires encryption, and Samba refuses more channels then: configure encryption as desired on the server (server smb encrypt = desired), or use one channel (--channels 1)"
        ),
        Status::USER_SESSION_DELETED => format!(
            "{answer}; the server does not know the session at this address: it is another server or another process of it (Samba on a loopback address), so that the address cannot be used"
        ),
        Status::REQUEST_NOT_ACCEPTED => format!(
            "{answer}; the server has multichannel switched off (Samba: server multi channel support), or too many channels"
        ),
        _ => answer,
    }
}

/// Why a share cannot be connected, and what to do.
fn share_problem(status: Status) -> String {
    let answer = format!("TreeConnect: {}", status_text(status));
    match status {
        Status::BAD_NETWORK_NAME => format!(
            "there is no such share on the server ({answer}): check the name; `smbclient -L HOST` lists the shares"
        ),
        Status::ACCESS_DENIED => {
            format!("the user has no access to this share ({answer}): grant it on the server")
        }
        _ => answer,
    }
}

/// The status by its name, or as a number.
pub fn status_text(status: Status) -> String {
    status.name().map_or_else(|| format!("0x{:08x}", status.0), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_connection_says_where_to_look() {
        let error = ClientError::Connect {
            server: "10.0.0.1:446".into(),
            error: std::io::Error::from(ErrorKind::ConnectionRefused),
        };
        assert!(error.to_string().ends_with("is the port right?"), "{error}");
    }

    #[test]
    fn a_missing_share_is_named() {
        let error =
            ClientError::Share { share: r"\\fs\nope".into(), status: Status::BAD_NETWORK_NAME };
        assert_eq!(
            error.to_string(),
            r"\\fs\nope: there is no such share on the server (TreeConnect: STATUS_BAD_NETWORK_NAME): check the name; `smbclient -L HOST` lists the shares"
        );
        assert_eq!(error.status_name(), "STATUS_BAD_NETWORK_NAME");
    }
}
