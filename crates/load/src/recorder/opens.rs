//! Opens of simulated users, from the rows of their operations: the table `handles`.

use std::collections::HashMap;
use std::sync::Arc;

use smbscope_tables::code;
use smbscope_tables::open::{OpenLife, OpenNames, smb2_writes};
use smbscope_tables::tables::Handle;

use smbscope_wire::smb2::Command;

use smbscope_client::row::{LinkNames, Row};

/// Opens of some users: those that are open, and those that ended and were not taken yet.
#[derive(Default)]
pub struct Opens {
    live: HashMap<u64, Live>,
    /// Opens of `live` that were closed before the last [`Opens::take`], and since then: a notification
    /// that is answered after the Close of its directory still counts.
    closed: [Vec<u64>; 2],
    ended: Vec<Handle>,
    /// Opens that ended with their connection.
    pub lost: u64,
}

struct Live {
    life: OpenLife,
    file_id: [u8; 16],
    path: Option<Arc<str>>,
    link: Arc<LinkNames>,
}

impl Opens {
    /// Takes an operation, with its number, that ended at `end`; in the order in which they ended.
    pub fn count(&mut self, row: &Row, end: i64) {
        let operation = &row.operation;
        let command = operation.command().unwrap_or_default();
        let succeeded = operation.status() == Some(0);
        let is = |wanted: Command| command == code::command(2, wanted.0) && succeeded;
        if is(Command::TREE_DISCONNECT) || is(Command::LOGOFF) {
            let tree = operation.tree_id().filter(|_| is(Command::TREE_DISCONNECT));
            let session = operation.session_id().unwrap_or_default();
            for live in self.live.values_mut().filter(|live| live.life.is_of(session, tree)) {
                live.life.end(end, operation.operation());
            }
        }
        let Some(number) = operation.handle() else { return };
        if is(Command::CREATE) && !self.live.contains_key(&number) {
            let mut life = OpenLife::new(number, operation);
            life.open(operation, row.told.as_deref().copied().unwrap_or_default(), end);
            let file_id = operation.file_id().unwrap_or_default();
            let (path, link) = (row.path.clone(), row.link.clone());
            self.live.insert(number, Live { life, file_id, path, link });
        }
        let Some(live) = self.live.get_mut(&number) else { return };
        live.life.count(operation, smb2_writes(operation));
        // The file may have another name since.
        if row.path.is_some() {
            live.path.clone_from(&row.path);
        }
        if is(Command::CLOSE) {
            let size = row.told.as_ref().and_then(|told| told.size_bytes);
            live.life.close(operation, size, end);
            self.closed[1].push(number);
        }
    }

    /// A connection was lost: its opens have ended then without a Close, except for durable ones, which
    /// are not reclaimed.
    pub fn end(&mut self, recording: &Arc<str>, connection: u64, time: i64) {
        let ended = self.live.extract_if(|_, live| live.life.connection() == connection);
        let lost = &mut self.lost;
        self.ended.extend(ended.map(|(_, mut live)| {
            *lost += u64::from(!live.life.is_closed());
            if !live.life.is_durable() {
                live.life.end(time, None);
            }
            live.row(recording)
        }));
    }

    /// Hands over all remaining opens as still open.
    pub fn end_all(&mut self, recording: &Arc<str>) {
        self.ended.extend(self.live.drain().map(|(_, live)| live.row(recording)));
    }

    /// Rows of the opens that ended; a closed open is held back for one call.
    pub fn take(&mut self, recording: &Arc<str>) -> Vec<Handle> {
        let [before, since] = &mut self.closed;
        let closed = before.drain(..).filter_map(|number| self.live.remove(&number));
        self.ended.extend(closed.map(|live| live.row(recording)));
        std::mem::swap(before, since);
        std::mem::take(&mut self.ended)
    }
}

impl Live {
    fn row(&self, recording: &Arc<str>) -> Handle {
        let text = |text: &str| (!text.is_empty()).then(|| text.into());
        let names = OpenNames {
            recording: recording.clone(),
            client: self.link.client.as_str().into(),
            user: text(&self.link.user),
            share: text(&self.link.share),
            path: self.path.clone(),
        };
        self.life.row(self.file_id, names)
    }
}

#[cfg(test)]
mod tests {
    use smbscope_tables::open::CreateResult;
    use smbscope_tables::operation::{Column, Operation};

    use super::*;

    fn row(command: Command, handle: u64, status: u32, bytes: u64) -> Row {
        let mut operation = Operation::default();
        operation.set_command(code::command(2, command.0));
        operation.set_handle(handle);
        operation.set_status(status);
        operation.set_connection(7);
        operation.set_transferred_bytes(bytes);
        operation.set_operation(handle * 10);
        let link = LinkNames { user: "u".into(), client: "c".into(), ..LinkNames::default() };
        let result =
            CreateResult { size_bytes: Some(99), durable: Some(true), ..CreateResult::default() };
        let result = Some(Box::new(result));
        let (path, link) = (Some("a\\b".into()), Arc::new(link));
        Row { operation, path, link, told: result, read_late_ns: None }
    }

    #[test]
    fn an_open_lives_from_create_to_close() {
        let recording: Arc<str> = "run".into();
        let mut opens = Opens::default();
        opens.count(&row(Command::CREATE, 1, 0, 0), 10);
        opens.count(&row(Command::READ, 1, 0, 500), 20);
        opens.count(&row(Command::READ, 1, 0xc000_0011, 0), 21);
        opens.count(&row(Command::WRITE, 1, 0, 30), 22);
        // One that failed, and one that was never closed.
        opens.count(&row(Command::CREATE, 2, 0xc000_0022, 0), 23);
        opens.count(&row(Command::CREATE, 3, 0, 0), 24);
        assert!(opens.take(&recording).is_empty());
        opens.count(&row(Command::CLOSE, 1, 0, 0), 30);
        assert!(opens.take(&recording).is_empty());
        opens.count(&row(Command::CHANGE_NOTIFY, 1, 0x10b, 0), 31);
        let [one] = &opens.take(&recording)[..] else { panic!() };
        assert_eq!((one.opened_at, one.closed_at, one.operations), (Some(10), Some(30), 6));
        assert_eq!((one.reads, one.read_bytes, one.writes, one.written_bytes), (2, 500, 1, 30));
        assert_eq!((one.create_operation, one.close_operation), (Some(10), Some(10)));
        assert_eq!((one.durable, one.size_bytes, one.share.as_ref()), (Some(true), Some(99), None));
        // Reclaimed in another session it is still one open.
        opens.count(&row(Command::CREATE, 3, 0, 0), 40);
        opens.end(&recording, 8, 50);
        assert!(opens.take(&recording).is_empty());
        opens.end(&recording, 7, 50);
        let [one] = &opens.take(&recording)[..] else { panic!() };
        assert_eq!(
            (one.handle, one.opened_at, one.closed_at, one.operations),
            (3, Some(24), None, 2)
        );
    }

    #[test]
    fn an_open_ends_with_its_tree_session_and_connection() {
        let of = |command, handle, session| {
            let mut row = row(command, handle, 0, 0);
            row.operation.set_session_id(session);
            row.operation.set_tree_id(session as u32);
            row.told = None;
            row
        };
        let recording: Arc<str> = "run".into();
        let mut opens = Opens::default();
        for open in 1..=3 {
            opens.count(&of(Command::CREATE, open, open), 10);
        }
        let mut bye = of(Command::TREE_DISCONNECT, 0, 1);
        bye.operation.clear(Column::handle);
        opens.count(&bye, 20);
        let mut bye = of(Command::LOGOFF, 0, 2);
        bye.operation.clear(Column::handle);
        opens.count(&bye, 30);
        opens.end(&recording, 7, 40);
        let mut ends: Vec<_> = opens.take(&recording).iter().map(|one| one.closed_at).collect();
        ends.sort();
        assert_eq!(ends, [Some(20), Some(30), Some(40)]);
    }
}
