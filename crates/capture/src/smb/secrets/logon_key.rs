//! The session key of one logon, computed from its messages and the user's secrets.
//!
//! A logon is one or more session setups (MS-SMB2 section 3.2.4.2.3) whose security blobs hold NTLMSSP
//! messages (MS-NLMP) or Kerberos messages (RFC 4120), bare or in SPNEGO. Owns which message of which
//! leg gives what; the computation is `smbscope_wire::secrets`. A logon that begins again within the
//! same session setup (another mechanism, or a repeated ticket) replaces what was found.

use smbscope_wire::auth;
use smbscope_wire::auth::ap::{ApReq, ap_rep};
use smbscope_wire::auth::kerberos::TicketId;
use smbscope_wire::auth::ntlmssp::{self, Message};
use smbscope_wire::crypto::Key;
use smbscope_wire::secrets::{Secrets, Ticket, Unlocked};
use smbscope_wire::smb2::session::{SessionSetupRequest, SessionSetupResponse};

/// What the messages of a logon have shown so far.
#[derive(Default)]
pub struct LogonKey {
    /// The nonce of the server's NTLM CHALLENGE.
    server_challenge: Option<[u8; 8]>,
    found: Option<Unlocked<Found>>,
    is_binding: bool,
}

/// What a request gave.
enum Found {
    /// NTLM: the session key.
    Key(Key),
    /// Kerberos: what the service's answer completes.
    Ticket(Ticket),
}

impl LogonKey {
    /// Takes a session setup request. If it holds a ticket that was opened: which, and its client.
    pub fn request(&mut self, message: &[u8], secrets: &Secrets) -> Option<(TicketId, String)> {
        let view = SessionSetupRequest(message);
        self.is_binding |= view.is_binding() == Some(true);
        let blob = view.security_blob()?;
        let token = auth::token(blob);
        if let Some(message) = Message::parse(token) {
            if message.kind() == Some(ntlmssp::Kind::AUTHENTICATE) {
                let challenge = self.server_challenge.as_ref();
                self.found = challenge.map(|challenge| ntlm(secrets, challenge, &message));
            }
            return None;
        }
        if token.starts_with(b"NEGOEXTS") {
            // Its keys come from certificates, unless it falls back to another mechanism.
            self.found = Some(Unlocked::Missing);
            return None;
        }
        let request = ApReq::parse(token)?;
        let opened = secrets.ticket(&request);
        let client = match &opened {
            Unlocked::With(ticket) => ticket.client.clone(),
            _ => None,
        };
        self.found = Some(map(opened, Found::Ticket));
        auth::inspect(blob).kerberos.and_then(|message| message.ticket).zip(client)
    }

    /// Takes a reply that more requests follow.
    pub fn reply(&mut self, message: &[u8]) {
        let blob = SessionSetupResponse(message).security_blob().unwrap_or_default();
        if let Some(message) = Message::parse(auth::token(blob)) {
            self.server_challenge = message.server_challenge().copied();
        }
    }

    /// Whether it binds a session to another connection: its key signs there, and encrypts nothing.
    pub fn is_binding(&self) -> bool {
        self.is_binding
    }

    /// The session keys that are possible, the most likely first, with the reply that accepts the
    /// logon, and how they are known; `None` if the capture lacks a part of the logon.
    pub fn finish(self, reply: &[u8]) -> Option<(Unlocked<Vec<Key>>, &'static str)> {
        let blob = SessionSetupResponse(reply).security_blob().unwrap_or_default();
        let found = self.found?;
        let how = match &found {
            Unlocked::With(Found::Key(_)) => "password",
            Unlocked::With(Found::Ticket(_)) => "keytab",
            Unlocked::Wrong => "wrong secret",
            Unlocked::Missing => "no secret",
        };
        let keys = map(found, |found| match found {
            Found::Key(key) => vec![key],
            Found::Ticket(ticket) => ticket.session_keys(ap_rep(auth::token(blob))),
        });
        Some((keys, how))
    }
}

fn ntlm(secrets: &Secrets, challenge: &[u8; 8], message: &Message<'_>) -> Unlocked<Found> {
    map(secrets.ntlm(challenge, message), Found::Key)
}

fn map<T, U>(outcome: Unlocked<T>, of: impl FnOnce(T) -> U) -> Unlocked<U> {
    match outcome {
        Unlocked::With(value) => Unlocked::With(of(value)),
        Unlocked::Wrong => Unlocked::Wrong,
        Unlocked::Missing => Unlocked::Missing,
    }
}
