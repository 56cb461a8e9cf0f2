//! Which messages of a server count.
//!
//! A reply counts if it answers a request that was sent, and has the protection of that request: what the reply claims
//! about itself, and about its sender, decides nothing. `docs/method/client-checks.md` lists the checks of MS-SMB2 section
//! 3.2.5 with the test of each (`tests/strict`).

use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::{HEADER_BYTES, Member};
use smbscope_wire::smb2::oplock::NOTIFICATION_MESSAGE_ID;
use smbscope_wire::status::Status;

use super::{Channel, Pending, Proof};
use crate::error::ClientError;

/// A message that counts.
pub(super) enum Admitted {
    /// A break.
    Notification,
    /// A reply to the request at this place in the list of those that wait.
    Reply(usize),
}

impl Channel {
    /// Checks one message; `sealed` is the session in the transform header of an encrypted message. `None`: it is discarded.
    ///
    /// # Errors
    /// The message shows that the server, or somebody on the path, violates the protocol.
    pub(super) fn admit(
        &self,
        member: &Member<'_>,
        sealed: Option<u64>,
    ) -> Result<Option<Admitted>, ClientError> {
        let header = &member.header;
        if !header.is_response() || usize::from(header.structure_size) != HEADER_BYTES {
            return Err(ClientError::Protocol(
                "the server sent a message that is not a reply".into(),
            ));
        }
        if header.message_id == NOTIFICATION_MESSAGE_ID {
            if header.command != Command::OPLOCK_BREAK {
                return Err(answers(Command::OPLOCK_BREAK, header.command));
            }
            // It is never signed, so that only encryption protects it.
            let is_bare = self.protection.seal.is_some() && sealed.is_none();
            return Ok((!is_bare).then_some(Admitted::Notification));
        }
        let is_its = |pending: &Pending| pending.message_id == header.message_id;
        let place = self.pending.iter().position(is_its);
        let Some((place, pending)) =
            place.and_then(|place| Some((place, self.pending.get(place)?)))
        else {
            let id = header.message_id;
            return Err(ClientError::Protocol(format!(
                "the server answered message {id}, which waits for no reply"
            )));
        };
        if header.command != pending.command {
            return Err(answers(pending.command, header.command));
        }
        // The first SessionSetup has none.
        let is_other = |session: u64| pending.session_id != 0 && session != pending.session_id;
        if is_other(header.session_id) || sealed.is_some_and(is_other) {
            return Err(ClientError::Protocol("a reply names another session".into()));
        }
        if header.is_interim() {
            // It is not signed (section 3.2.5.1.3), but encrypted like any other reply.
            let is_bare = pending.proof == Proof::Encryption && sealed.is_none();
            return Ok((!is_bare).then_some(Admitted::Reply(place)));
        }
        if sealed.is_none() {
            self.verify(member, pending)?;
        }
        Ok(Some(Admitted::Reply(place)))
    }

    /// Checks that a final reply in plaintext has the protection of its request.
    fn verify(&self, member: &Member<'_>, pending: &Pending) -> Result<(), ClientError> {
        let header = &member.header;
        if pending.proof == Proof::Encryption {
            return Err(ClientError::Unverified("it is not encrypted, but its request was"));
        }
        // A logon's last reply is signed with the key that it establishes: `logon` checks it. One that refuses the logon
        // need not be signed, since nothing follows from it.
        let ends_logon = pending.command == Command::SESSION_SETUP
            && header.status_or_channel_sequence != Status::MORE_PROCESSING_REQUIRED.0;
        let claims = header.flags.is_signed() && self.protection.signer.is_some();
        if ends_logon || (pending.proof == Proof::None && !claims) {
            return Ok(());
        }
        match &self.protection.signer {
            Some(signer) if signer.verify(member.bytes) => Ok(()),
            _ => Err(ClientError::Unverified("its signature is wrong or missing")),
        }
    }
}

/// The error of a reply with another command than its request.
fn answers(sent: Command, answered: Command) -> ClientError {
    let name = |command: Command| {
        command.name().map_or_else(|| format!("command {}", command.0), str::to_owned)
    };
    ClientError::Protocol(format!(
        "the reply to a {} says that it answers a {}",
        name(sent),
        name(answered)
    ))
}
