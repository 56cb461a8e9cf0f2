//! Sessions, trees and opens while they live, and their rows.

use std::sync::Arc;

use smbscope_tables::open::{CreateResult, OpenLife, OpenNames, smb2_writes};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::{Coverage, Handle, Session, Tree};
use smbscope_wire::smb1;
use smbscope_wire::smb2::tree::ShareType;

use super::bounded::Entity;
use super::handle_end::{Channels, Ending};
use super::interned::Interned;
use crate::outcome;

/// A session while it lives.
#[derive(Clone, Default)]
pub struct SessionState {
    /// SessionId or UID.
    pub id: u64,
    key: u64,
    /// Its row so far, without names that others share.
    pub row: Session,
    pub client: Arc<str>,
    /// DOMAIN\user.
    pub user: Interned,
    /// It ended by a logoff; its number may be given to another.
    pub ended: Option<Ending>,
    pub channels: Channels,
    /// The server refused the logon, so there is no session.
    pub is_refused: bool,
}

impl Entity for SessionState {
    // Servers reuse ids and clash in them: sessions are found through their connections.
    type Key = u64;
    fn key(&self) -> u64 {
        self.key
    }
    fn renew(&mut self, key: u64) {
        *self = SessionState { key, ..SessionState::default() };
    }
    fn set_key(&mut self, key: u64) {
        self.key = key;
    }
    fn text_bytes(&self) -> usize {
        let row = &self.row;
        let texts = [&row.workstation, &row.mechanism, &row.decryption];
        let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
        self.user.text().len() + texts
    }
    fn has_ended(&self) -> bool {
        self.ended.is_some() || self.is_refused
    }
    fn free_texts(&mut self) {
        (self.user, self.row) = (Interned::default(), Session::default());
    }
}

impl SessionState {
    /// It was just seen.
    pub fn begin(&mut self, id: u64, connection: u64, time: i64) {
        self.id = id;
        self.row =
            Session { session_id: id, connection, start: time, end: time, ..Session::default() };
    }

    /// Takes what a session setup says.
    pub fn learn(&mut self, answer: &outcome::Session) {
        if let Some(user) = &answer.user {
            self.user = Interned::new(user);
        }
        let row = &mut self.row;
        if answer.workstation.is_some() {
            row.workstation.clone_from(&answer.workstation);
        }
        if answer.mechanism.is_some() {
            row.mechanism.clone_from(&answer.mechanism);
        }
        if let Some(how) = answer.decryption {
            row.decryption = Some(how.to_owned());
        }
        // The reply to another channel's setup says nothing of them (Samba's has no flags).
        if !answer.binding {
            row.guest = answer.guest.or(row.guest);
            row.encrypt_data = answer.encrypt_data.or(row.encrypt_data);
        }
    }

    /// Its row; none of one that was refused.
    pub fn row(&mut self, recording: &str) -> Option<Session> {
        (!self.is_refused).then(|| Session {
            recording: recording.to_owned(),
            client: self.client.to_string(),
            user: self.user.is_known().then(|| self.user.text().to_owned()),
            ..std::mem::take(&mut self.row)
        })
    }
}

/// A tree while it lives.
#[derive(Clone, Default)]
pub struct TreeState {
    key: (u64, u32),
    /// Which of those that had its id.
    pub number: u64,
    /// It was disconnected.
    pub ended: Option<Ending>,
    /// Its row so far.
    pub row: Tree,
    /// `\\server\share`.
    pub share: Interned,
}

impl Entity for TreeState {
    type Key = (u64, u32);
    fn key(&self) -> (u64, u32) {
        self.key
    }
    fn renew(&mut self, key: (u64, u32)) {
        *self = TreeState { key, ..TreeState::default() };
    }
    fn set_key(&mut self, key: (u64, u32)) {
        self.key = key;
    }
    fn text_bytes(&self) -> usize {
        self.share.text().len()
    }
    fn has_ended(&self) -> bool {
        self.ended.is_some()
    }
    fn free_texts(&mut self) {
        (self.share, self.row) = (Interned::default(), Tree::default());
    }
}

impl TreeState {
    /// It was just seen.
    pub fn begin(&mut self, number: u64, row: &Operation, time: i64) {
        self.number = number;
        self.row = Tree {
            session_id: row.session_id().unwrap_or_default(),
            tree_id: u64::from(self.key.1),
            connection: row.connection().unwrap_or_default(),
            start: row.request_start().unwrap_or(time),
            end: time,
            ..Tree::default()
        };
    }

    /// Takes what a tree connect says.
    pub fn learn(&mut self, answer: &outcome::Tree, share: Option<&str>) {
        if let Some(share) = share {
            self.share = Interned::new(share);
        }
        let row = &mut self.row;
        row.share_type.clone_from(&answer.share_type);
        row.share_flags = answer.flags;
        row.capabilities = answer.capabilities;
        row.continuous_availability = answer.continuous_availability;
        row.encrypt_data = answer.encrypt_data;
    }

    /// Whether its files are named pipes.
    pub fn is_of_pipes(&self) -> bool {
        self.row.share_type.as_deref() == ShareType::PIPE.name()
            || self.share.is_known() && self.share.text().ends_with("IPC$")
    }

    /// Its row.
    pub fn row(&mut self, recording: &str) -> Tree {
        Tree {
            recording: recording.to_owned(),
            share: self.share.is_known().then(|| self.share.text().to_owned()),
            ..std::mem::take(&mut self.row)
        }
    }
}

/// Bytes of a path that is kept for an open: more than Linux's PATH_MAX.
const PATH_BYTES: usize = 8_192;

/// An open while it lives.
#[derive(Clone, Default)]
pub struct HandleState {
    key: (u64, [u8; 16]),
    /// Its FileId at first; another when it was taken up again.
    file_id: [u8; 16],
    protocol: u8,
    /// Place of its session.
    pub session: u32,
    /// Place and number of its tree.
    pub tree: Option<(u32, u64)>,
    /// What its operations tell.
    pub life: OpenLife,
    /// File or directory.
    pub path: Interned<String>,
    /// Names of client, user and share, where the table of handles is wanted.
    pub names: [Option<Arc<str>>; 3],
}

impl Entity for HandleState {
    type Key = (u64, [u8; 16]);
    fn key(&self) -> (u64, [u8; 16]) {
        self.key
    }
    fn renew(&mut self, key: (u64, [u8; 16])) {
        (self.key, self.file_id) = (key, key.1);
        self.path.clear();
        self.names = [const { None }; 3];
    }
    fn set_key(&mut self, key: (u64, [u8; 16])) {
        self.key = key;
    }
    fn text_bytes(&self) -> usize {
        self.path.capacity()
    }
    fn has_ended(&self) -> bool {
        self.life.is_closed()
    }
    fn free_texts(&mut self) {
        self.path.clear();
        self.names = [const { None }; 3];
    }
}

impl HandleState {
    /// It was just seen.
    pub fn begin(&mut self, number: u64, row: &Operation) {
        self.protocol = row.protocol().unwrap_or(2);
        self.life.begin(number, row);
    }

    /// Whether it was opened in that session.
    pub fn is_of(&self, session: &SessionState) -> bool {
        self.key.0 == session.key
    }

    /// Its FileId at first.
    pub fn file_id(&self) -> [u8; 16] {
        self.file_id
    }

    /// Takes what a create says.
    pub fn open(
        &mut self,
        row: &Operation,
        answer: Option<&CreateResult>,
        path: Option<&str>,
        time: i64,
    ) {
        if let Some(path) = path {
            self.name(path);
        }
        self.life.open(row, answer.copied().unwrap_or_default(), time);
    }

    /// Its path from now on; one that no server opens is not remembered.
    pub fn name(&mut self, path: &str) {
        self.path.clear();
        if path.len() <= PATH_BYTES {
            self.path.set(path);
        }
    }

    /// Counts an operation on it.
    #[inline]
    pub fn count(&mut self, row: &Operation) {
        let writes = match row.command() {
            Some(command) if self.protocol == 1 => smb1::Command(command as u8).writes_data(),
            _ => smb2_writes(row),
        };
        self.life.count(row, writes);
    }

    /// Its row.
    pub fn row(&mut self, recording: Arc<str>) -> Handle {
        let [client, user, share] = std::mem::take(&mut self.names);
        let path = self.path.is_known().then(|| self.path.text().into());
        let names = OpenNames { recording, client: client.unwrap_or_default(), user, share, path };
        self.life.row(self.file_id, names)
    }
}

/// Takes opens that ended.
#[derive(Clone, Default)]
pub struct Closed {
    /// Whether the table is wanted.
    pub is_wanted: bool,
    pub recording: Arc<str>,
    pub rows: Vec<Handle>,
    /// Opens that were forgotten before their Close.
    pub forgotten: u64,
}

impl Closed {
    /// Takes one that was closed, or forgotten for the limit.
    pub fn take(&mut self, state: &mut HandleState) {
        self.forgotten += u64::from(!state.life.is_closed());
        self.keep(state);
    }

    /// Takes one that stays open.
    pub fn keep(&mut self, state: &mut HandleState) {
        if self.is_wanted {
            self.rows.push(state.row(self.recording.clone()));
        }
    }
}

/// Adds one set of counters to another; other fields are unchanged.
pub fn add_counters(sum: &mut Coverage, more: &Coverage) {
    macro_rules! add {
        ($($counter:ident)*) => { $(sum.$counter += more.$counter;)* };
    }
    add!(frames_not_tcp frames_tunnelled frames_link_unknown frames_fragment frames_malformed
        frames_not_smb frames_time_backwards clock_steps frames_repeated fragments_reassembled
        datagrams_not_sessions frames_netbeui frames_ipx quic_connections quic_maybe_smb
        connections connections_mid_stream connections_one_direction connections_evicted
        retransmissions out_of_order gaps gap_bytes segments_discarded resynchronised
        skipped_bytes messages messages_cut members_not_captured messages_malformed messages_unknown
        messages_encrypted messages_decrypted decryption_failed messages_compressed
        decompression_failed operations_unanswered replies_unmatched operations_discarded
        commands_unknown frames_roce frames_roce_other smb_direct_messages smb_direct_unknown
        smb_direct_given_up sessions_unlocked sessions_wrong_secret sessions_without_secret
        sessions_without_logon);
}
