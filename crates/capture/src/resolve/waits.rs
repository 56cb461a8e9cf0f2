//! Rows of the table `waits`: those of machines that use SMB.

use std::net::IpAddr;

use hashbrown::HashSet;
use smbscope_tables::tables::Wait;

/// Rows that are kept; more are discarded.
const ROWS_MAX: usize = 65_536;

/// Waits until the end of the recording: which machines use SMB is known only then.
#[derive(Clone, Default)]
pub struct Waiting {
    is_wanted: bool,
    rows: Vec<Wait>,
    clients: HashSet<String>,
    clients_max: usize,
}

impl Waiting {
    pub fn new(is_wanted: bool, clients_max: usize) -> Waiting {
        Waiting { is_wanted, clients_max, ..Waiting::default() }
    }

    /// Notes a client of SMB.
    pub fn uses_smb(&mut self, client: IpAddr) {
        if self.is_wanted && self.clients.len() < self.clients_max {
            self.clients.insert(client.to_string());
        }
    }

    /// Another recording begins: the waits of before do not belong to it.
    pub fn begin_recording(&mut self) {
        self.rows.clear();
    }

    /// Takes a wait.
    pub fn take(&mut self, row: Wait) {
        if !self.is_wanted || self.rows.len() >= ROWS_MAX {
            return;
        }
        if row.kind == "connect"
            && matches!(row.port, 139 | 445)
            && !self.clients.contains(&row.client)
        {
            self.clients.insert(row.client.clone());
        }
        self.rows.push(row);
    }

    /// The rows, in the order in which the waits began.
    pub fn end(&mut self, recording: &str) -> Vec<Wait> {
        let mut rows = std::mem::take(&mut self.rows);
        let clients = std::mem::take(&mut self.clients);
        rows.retain_mut(|row| {
            recording.clone_into(&mut row.recording);
            clients.contains(&row.client)
        });
        rows.sort_by(|one, other| {
            (one.start, one.first_frame, &one.subject).cmp(&(
                other.start,
                other.first_frame,
                &other.subject,
            ))
        });
        rows
    }
}
