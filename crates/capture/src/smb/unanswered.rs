//! What the request of an operation without reply tells of sessions and shares.
//!
//! Owns the operations' effects in captures of one direction and where a reply was lost. It does not
//! own their rows (`link`), nor what a refusal tells (`smb1::reply`, `smb2::reply`).

use smbscope_tables::operation::Operation;
use smbscope_wire::{smb1, smb2};

use crate::outcome::{Effect, Output, Tree};
use crate::smb::pending::Pending;

/// Who logged on: a session that goes on was let in. And which share was asked for. Without its
/// number (SMB1 gives it with the reply) a session is not found again.
pub fn effect(out: &mut Output, pending: &mut Pending) -> Effect {
    let row = &pending.row;
    if row.session_id().is_some_and(|id| id != 0)
        && let Some(session) = pending.session.take()
    {
        return out.session(*session);
    }
    // A path is told with every row.
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
