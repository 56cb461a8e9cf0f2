//! One operation of a message: its row, and what its reply does beyond the row.

use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Referral;
use smbscope_wire::smb1::{Command, Header};

use crate::outcome::{Effect, Open, Output, Session, Tree};
use crate::smb::pending::Pending;

/// One operation of an exchange.
#[derive(Clone, Debug, Default)]
pub struct Member {
    pub pending: Pending,
    /// What its reply does beyond the row.
    pub answer: Answer,
}

impl Member {
    pub fn command(&self) -> Command {
        Command(self.pending.row.command().unwrap_or(0) as u8)
    }

    /// FID and UID of the row.
    pub fn opened(&self) -> Option<(u16, u16)> {
        let [low, high, ..] = self.pending.row.file_id()?;
        Some((u16::from_le_bytes([low, high]), self.pending.row.session_id()? as u16))
    }
}

/// Effect of a reply on sessions, trees and opens.
#[derive(Clone, Debug, Default)]
pub enum Answer {
    #[default]
    Nothing,
    /// Opened a file.
    Open(Box<Open>),
    /// Closed the row's file.
    Close,
    /// Began or continued a session, perhaps as guest.
    Session(Option<bool>),
    /// Refused a session.
    Refused,
    /// Ended the row's session.
    Logoff,
    /// Connected a share, or refused it.
    Tree(Box<Tree>),
    /// Disconnected the row's tree.
    TreeDisconnect,
    /// Began a listing that continues with this number.
    Search(u16),
    /// Details the targets of a DFS path.
    Referrals(Vec<Referral>),
}

impl Answer {
    /// The effect for `resolve`; `pending` contains what the request said.
    pub fn effect(&mut self, pending: &mut Pending, out: &mut Output) -> Effect {
        match std::mem::take(self) {
            Answer::Nothing | Answer::Search(_) => Effect::None,
            Answer::Open(open) => out.open(*open),
            Answer::Close => Effect::Close(None),
            Answer::Session(guest) => {
                let mut session = pending.session.take().map(|held| *held).unwrap_or_default();
                let is_null = session.guest == Some(true);
                session.guest = guest.map(|guest| guest || is_null);
                out.session(session)
            }
            Answer::Refused => {
                let session = pending.session.take().map(|held| *held).unwrap_or_default();
                out.session(Session { refused: true, guest: None, ..session })
            }
            Answer::Referrals(targets) => {
                let asked = pending.has_name.then(|| pending.name.clone());
                out.referrals(targets, asked)
            }
            Answer::Logoff => Effect::Logoff,
            Answer::Tree(tree) => {
                let share = (!pending.name.is_empty()).then(|| out.push_text(&pending.name));
                out.tree(Tree { share, ..*tree })
            }
            Answer::TreeDisconnect => Effect::TreeDisconnect,
        }
    }
}

/// Whether a UID certainly names a session: before the logon it is 0 or 0xffff.
fn is_uid(uid: u16) -> bool {
    !matches!(uid, 0 | u16::MAX)
}

/// The session in the header of a reply. Servers with share-level passwords give every client UID
/// 0.
pub fn answered_uid(header: &Header, command: Command) -> Option<u64> {
    let is_inside = match command {
        Command::SESSION_SETUP_AND_X => header.status == 0,
        Command::TREE_CONNECT | Command::TREE_CONNECT_AND_X | Command::LOGOFF_AND_X => true,
        _ => has_tree(command),
    };
    (is_uid(header.uid) || header.uid == 0 && is_inside).then_some(u64::from(header.uid))
}

/// What the header says of every operation of its message.
pub fn row(header: &Header, command: Command) -> Operation {
    let mut row = Operation::default();
    row.set_protocol(1);
    row.set_command(code::command(1, u16::from(command.primary().0)));
    row.set_message_id(u64::from(header.mid));
    if is_uid(header.uid) {
        row.set_session_id(u64::from(header.uid));
    }
    if has_tree(command) {
        row.set_tree_id(u32::from(header.tid));
    }
    row.set_signed(header.is_signed());
    row
}

/// Commands whose TID means something (MS-CIFS section 2.2.3.1).
pub fn has_tree(command: Command) -> bool {
    !matches!(
        command,
        Command::NEGOTIATE
            | Command::SESSION_SETUP_AND_X
            | Command::LOGOFF_AND_X
            | Command::TREE_CONNECT
            | Command::TREE_CONNECT_AND_X
            | Command::ECHO
            | Command::NT_CANCEL
            | Command::PROCESS_EXIT
    )
}
