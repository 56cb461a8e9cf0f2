//! What an unanswered request says about sessions and shares.
//!
//! Owns the effects of such operations, in captures of one direction and where a reply was lost. It
//! does not own their rows (`pairing`), nor the effects of a refusal (`smb1::reply`,
//! `smb2::reply`).

use smbscope_tables::operation::Operation;
use smbscope_wire::{smb1, smb2};

use crate::outcome::{Effect, Output, Tree};
use crate::smb::pending::Pending;

/// The effect of an unanswered logon or tree connect. A session that continues was accepted. A
/// session without an id cannot be found again (SMB1 sends it with the reply).
pub fn effect(out: &mut Output, pending: &mut Pending) -> Effect {
    let row = &pending.row;
    if row.session_id().is_some_and(|id| id != 0)
        && let Some(session) = pending.session.take()
    {
        return out.session(*session);
    }
    // A path is stored with every row.
    let has_share = !pending.has_name && !pending.name.is_empty();
    if has_share && is_tree_connect(row) {
        let share = Some(out.push_text(&pending.name));
        return out.tree(Tree { share, refused: true, ..Tree::default() });
    }
    Effect::None
}

fn is_tree_connect(row: &Operation) -> bool {
    let command = row.command().unwrap_or_default();
    match row.protocol() {
        Some(1) => matches!(
            smb1::Command(command as u8),
            smb1::Command::TREE_CONNECT | smb1::Command::TREE_CONNECT_AND_X
        ),
        _ => smb2::Command(command as u16) == smb2::Command::TREE_CONNECT,
    }
}
