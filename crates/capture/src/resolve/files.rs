//! Opens and names: which file an operation works on.

use std::net::IpAddr;

use smbscope_tables::builder::{Names, extension_of};
use smbscope_tables::code::{self, Detail};
use smbscope_tables::operation::{Column, Operation};
use smbscope_wire::smb1::trans2::Trans2;
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::status::Status;

use super::connections::ConnectionState;
use super::handle_end::end_open;
use super::interned::Interned;
use super::{Map, Resolver};
use crate::outcome::{Details, Effect, OperationEnd};

/// Bytes of a path that a connection keeps for the rest of a compound: Linux's PATH_MAX.
const CHAIN_PATH_BYTES: usize = 4_096;

impl Resolver {
    pub(super) fn file(
        &mut self,
        connection: &mut ConnectionState,
        session: Option<(u32, u64)>,
        tree: Option<u32>,
        done: &OperationEnd,
        details: &Details,
        row: &mut Operation,
    ) {
        let path = done.path.map(|path| details.text(path));
        let handle = if let Effect::Open(index) = done.effect
            && let (Some(session), Some(file)) = (session, row.file_id())
        {
            let key = (session.1, file);
            let opened = details.opens.get(index as usize);
            let taken_up = self.durable.find(connection.server, file);
            let taken_up =
                taken_up.filter(|&place| self.take_up(place, key, session.0, tree, path));
            Some(taken_up.unwrap_or_else(|| {
                let place = self.begin_handle(key, session.0, tree, row);
                if let Some(state) = self.handles.get_mut(place) {
                    state.open(row, opened, path, done.time);
                    if state.life.is_durable() {
                        self.durable.add(connection.server, file, place, self.limits.handles);
                    }
                }
                self.measure_handle(place);
                place
            }))
        } else if let (Some(session), Some(file)) = (session, row.file_id()) {
            // One that was opened before the capture began gets a number and no path.
            let key = (session.1, file);
            let known = self.handles.find(&key, connection.handle);
            known.or_else(|| {
                may_be_open(row, file).then(|| self.begin_unseen(key, session.0, tree, row))
            })
        } else {
            None
        };
        let names = &mut self.builder.names;
        if let Some(place) = handle
            && let Some(state) = self.handles.get_mut(place)
        {
            connection.handle = place;
            row.set_handle(state.life.handle);
            state.count(row);
            let opened = matches!(done.effect, Effect::Open(_));
            if (opened || path.is_none()) && state.path.is_known() {
                set_path(row, names, &mut state.path);
                let is_short = state.path.text().len() <= CHAIN_PATH_BYTES;
                if opened && done.chain != 0 && is_short {
                    connection.chain = done.chain;
                    connection.chain_path.set(state.path.text());
                }
            }
            match done.effect {
                Effect::Close(size) => {
                    state.life.close(row, size, done.time);
                    if state.life.is_durable() {
                        self.durable.remove(connection.server, state.file_id());
                    }
                    self.handles.retire(place, &mut |state| self.closed.take(state));
                    return;
                }
                Effect::Rename(name) => {
                    state.name(details.text(name));
                    self.measure_handle(place);
                }
                _ => {}
            }
        }
        let names = &mut self.builder.names;
        if row.has(Column::path) {
            return;
        }
        if let Some(path) = path {
            if asks_for_referral(row) {
                // The path belongs to a namespace, not to the share over which it is requested.
                row.clear(Column::share);
            }
            let known = match done.chain {
                0 => &mut connection.path,
                chain => {
                    connection.chain = chain;
                    &mut connection.chain_path
                }
            };
            known.set(path);
            set_path(row, names, known);
            if path.len() > CHAIN_PATH_BYTES {
                known.clear();
            }
        } else if done.chain != 0 && connection.chain == done.chain {
            // Members of a compound work on its file even where it could not be opened.
            if connection.chain_path.is_known() {
                set_path(row, names, &mut connection.chain_path);
            }
        }
    }

    /// Makes room for the path of an open.
    fn measure_handle(&mut self, place: u32) {
        self.handles.measure(place, &mut |state| {
            end_open(state, &self.sessions, &self.trees);
            self.closed.take(state);
        });
    }

    #[cold]
    fn begin_unseen(
        &mut self,
        key: (u64, [u8; 16]),
        session: u32,
        tree: Option<u32>,
        row: &mut Operation,
    ) -> u32 {
        self.coverage.paths_unknown += 1;
        self.begin_handle(key, session, tree, row)
    }

    /// Makes a durable open one of another session, if it is what a Create there was answered with:
    /// it has the same persistent FileId (MS-SMB2 section 3.3.5.9.7).
    #[cold]
    fn take_up(
        &mut self,
        place: u32,
        key: (u64, [u8; 16]),
        session: u32,
        tree: Option<u32>,
        path: Option<&str>,
    ) -> bool {
        let trees = &self.trees;
        let Some(state) = self.handles.get_mut(place) else { return false };
        let is_same = !state.life.is_closed()
            && persistent(state.file_id()) == persistent(key.1)
            && path.is_none_or(|path| path.is_empty() || state.path.text() == path);
        if is_same {
            let of = |place| Some((place, trees.get(place)?.number));
            (state.session, state.tree) = (session, tree.and_then(of));
            self.handles.rekey(place, key);
        }
        is_same
    }

    fn begin_handle(
        &mut self,
        key: (u64, [u8; 16]),
        session: u32,
        tree: Option<u32>,
        row: &Operation,
    ) -> u32 {
        let place = self.handles.insert(key, &mut |state| {
            end_open(state, &self.sessions, &self.trees);
            self.closed.take(state);
        });
        self.handle_numbers += 1;
        if let Some(state) = self.handles.get_mut(place) {
            state.begin(self.handle_numbers, row);
            let of = |place| Some((place, self.trees.get(place)?.number));
            (state.session, state.tree) = (session, tree.and_then(of));
            if self.tables.handles {
                let session = self.sessions.get(session);
                let tree = tree.and_then(|tree| self.trees.get(tree));
                state.names = [
                    session.map(|session| session.client.clone()),
                    session.and_then(|session| session.user.shared()),
                    tree.and_then(|tree| tree.share.shared()),
                ];
            }
        }
        place
    }
}

/// Durable opens by server and persistent FileId.
#[derive(Clone, Default)]
pub struct Durable(Map<(IpAddr, [u8; 8]), u32>);

impl Durable {
    fn find(&self, server: IpAddr, file: [u8; 16]) -> Option<u32> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(server, persistent(file))).copied()
    }

    /// Those forgotten for the limit are still here, until there are too many.
    fn add(&mut self, server: IpAddr, file: [u8; 16], place: u32, limit: usize) {
        if self.0.len() > 2 * limit {
            self.0.clear();
        }
        self.0.insert((server, persistent(file)), place);
    }

    fn remove(&mut self, server: IpAddr, file: [u8; 16]) {
        self.0.remove(&(server, persistent(file)));
    }
}

fn persistent(file: [u8; 16]) -> [u8; 8] {
    *file.first_chunk().unwrap_or(&[0; 8])
}

/// ERRbadfid of class ERRDOS and ERRbaduid of class ERRSRV, as rows have them.
const BAD_FID: u32 = 6 << 16 | 1;
const BAD_UID: u32 = 91 << 16 | 2;

/// Whether an open can be there that nothing is known of; not when the server says that it has none.
#[cold]
fn may_be_open(row: &Operation, file: [u8; 16]) -> bool {
    let denied = match row.status().map(Status) {
        Some(Status::FILE_CLOSED | Status::INVALID_HANDLE | Status(BAD_FID)) => true,
        // It did not even look.
        Some(Status::USER_SESSION_DELETED | Status::NETWORK_NAME_DELETED | Status(BAD_UID)) => true,
        // No server gives this one away.
        Some(status) => status.is_error() && row.protocol() == Some(2) && file == [0; 16],
        None => false,
    };
    !denied
}

/// Whether it requests a DFS referral, with either protocol.
fn asks_for_referral(row: &Operation) -> bool {
    const FSCTLS: [Fsctl; 2] = [Fsctl::DFS_GET_REFERRALS, Fsctl::DFS_GET_REFERRALS_EX];
    let trans2 = code::detail(Detail::Transaction2, u32::from(Trans2::GET_DFS_REFERRAL.0) << 16);
    row.detail().is_some_and(|detail| {
        detail == trans2
            || FSCTLS.iter().any(|fsctl| detail == code::detail(Detail::Fsctl, fsctl.0))
    })
}

fn set_path(row: &mut Operation, names: &mut Names, path: &mut Interned<String>) {
    let fresh = path.generation() != names.generation + 1;
    row.set_path(path.in_pool(names, |names| &mut names.path));
    if fresh {
        path.extension = extension_of(path.text()).map(|extension| {
            if extension.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
                names.extension.intern(&extension.to_lowercase())
            } else {
                names.extension.intern(extension)
            }
        });
    }
    if let Some(extension) = path.extension {
        row.set_extension(extension);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_referrals_are_known_in_both_protocols() {
        let asks = |detail: u64| {
            let mut row = Operation::default();
            row.set_detail(detail);
            asks_for_referral(&row)
        };
        let trans2 = |code: Trans2| code::detail(Detail::Transaction2, u32::from(code.0) << 16);
        assert!(asks(code::detail(Detail::Fsctl, Fsctl::DFS_GET_REFERRALS_EX.0)));
        assert!(asks(trans2(Trans2::GET_DFS_REFERRAL)));
        assert!(!asks(trans2(Trans2::FIND_FIRST2)));
        assert!(!asks(code::detail(Detail::Fsctl, Fsctl::PIPE_TRANSCEIVE.0)));
        assert!(!asks_for_referral(&Operation::default()));
    }
}
