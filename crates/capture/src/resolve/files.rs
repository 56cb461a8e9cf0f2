//! Opens and names: which file an operation works on.

use smbscope_event::builder::{Names, extension_of};
use smbscope_event::operation::{Column, Operation};
use smbscope_wire::status::Status;

use super::Resolver;
use super::ends::end_open;
use super::known::Known;
use super::links::Link;
use crate::output::{Done, Effect, Told};

impl Resolver {
    pub(super) fn file(
        &mut self,
        link: &mut Link,
        session: Option<(u32, u64)>,
        tree: Option<u32>,
        done: &Done,
        told: &Told,
        row: &mut Operation,
    ) {
        let path = done.path.map(|path| told.text(path));
        let handle = if let Effect::Open(index) = done.effect
            && let (Some(session), Some(file)) = (session, row.file_id())
        {
            let place = self.begin_handle((session.1, file), session.0, tree, row);
            if let Some(state) = self.handles.get_mut(place) {
                state.open(row, told.opens.get(index as usize), path, done.time);
            }
            Some(place)
        } else if let (Some(session), Some(file)) = (session, row.file_id()) {
            // One that was opened before the capture began gets a number and no path.
            let key = (session.1, file);
            let known = self.handles.find(&key, link.handle);
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
            link.handle = place;
            row.set_handle(state.life.handle);
            state.count(row);
            let opened = matches!(done.effect, Effect::Open(_));
            if (opened || path.is_none()) && state.path.is_known() {
                set_path(row, names, &mut state.path);
                if opened && done.chain != 0 {
                    link.chain = done.chain;
                    link.chain_path.set(state.path.text());
                }
            }
            match done.effect {
                Effect::Close(size) => {
                    state.life.close(row, size, done.time);
                    self.handles.retire(place, &mut |state| self.closed.take(state));
                    return;
                }
                Effect::Rename(name) => state.name(told.text(name)),
                _ => {}
            }
        }
        if row.has(Column::path) {
            return;
        }
        if let Some(path) = path {
            let known = match done.chain {
                0 => &mut link.path,
                chain => {
                    link.chain = chain;
                    &mut link.chain_path
                }
            };
            known.set(path);
            set_path(row, names, known);
        } else if done.chain != 0 && link.chain == done.chain {
            // Members of a compound work on its file even where it could not be opened.
            set_path(row, names, &mut link.chain_path);
        }
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

/// ERRbadfid of class ERRDOS, as rows have it.
const BAD_FID: u32 = 6 << 16 | 1;

/// Whether an open can be there that nothing is known of; not when the server says that it has none.
#[cold]
fn may_be_open(row: &Operation, file: [u8; 16]) -> bool {
    let denied = match row.status().map(Status) {
        Some(Status::FILE_CLOSED | Status::INVALID_HANDLE | Status(BAD_FID)) => true,
        // No server gives this one away.
        Some(status) => status.is_error() && row.protocol() == Some(2) && file == [0; 16],
        None => false,
    };
    !denied
}

fn set_path(row: &mut Operation, names: &mut Names, path: &mut Known<String>) {
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
