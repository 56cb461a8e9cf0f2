//! The parts of a reply that a client needs, and how they are read from the message.

use smbscope_tables::code;
use smbscope_tables::message::file_bytes;
use smbscope_tables::open::CreateResult;
use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::access::FileAttributes;
use smbscope_wire::smb2::close::CloseResponse;
use smbscope_wire::smb2::create::{CreateResponse, OplockLevel};
use smbscope_wire::smb2::create_context::{DurableFlags, Lease, ResponseContext};
use smbscope_wire::smb2::directory::QueryDirectoryResponse;
use smbscope_wire::smb2::error::is_error_response;
use smbscope_wire::smb2::header::{Header, Member};
use smbscope_wire::smb2::info::QueryInfoResponse;
use smbscope_wire::smb2::ioctl::IoctlResponse;
use smbscope_wire::smb2::notify::ChangeNotifyResponse;
use smbscope_wire::smb2::read::ReadResponse;
use smbscope_wire::smb2::write::WriteResponse;
use smbscope_wire::smb2::{Command, FileId};
use smbscope_wire::status::Status;

use super::error::ClientError;

/// How much of a reply is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Want {
    /// The caller does not wait for it.
    Nothing,
    /// Status, counts, and the result of a Create.
    #[default]
    Result,
    /// Also returns the whole message.
    Message,
}

/// A final reply.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The operation's status.
    pub status: Status,
    /// The header's session id.
    pub session_id: u64,
    /// The header's tree id; 0 in an asynchronous reply.
    pub tree_id: u32,
    /// Bytes read, written or answered.
    pub transferred: u32,
    /// The result of a successful Create.
    pub open: Option<Open>,
    /// Size of the file from the reply to a Close with POSTQUERY_ATTRIB.
    pub closed_bytes: Option<u64>,
    /// The message from its header on, with [`Want::Message`].
    pub message: Vec<u8>,
}

/// A file that was opened.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// The open.
    pub file_id: FileId,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Whether it is a directory.
    pub directory: bool,
    /// The oplock granted.
    pub oplock: OplockLevel,
    /// The lease granted.
    pub lease: Option<Lease>,
    /// Whether it survives the connection.
    pub durable: bool,
    /// Whether it also survives the server; `None` if the reply does not say.
    pub persistent: Option<bool>,
}

impl Reply {
    /// What a Create opened, or why it failed.
    ///
    /// # Errors
    /// The reply reports success without a file id: only the end of the session could close that open.
    pub fn opened(&self) -> Result<Result<Open, Status>, ClientError> {
        match (self.open, self.status) {
            (Some(open), _) => Ok(Ok(open)),
            (None, Status::SUCCESS) => {
                Err(ClientError::Protocol("the Create reply is cut off".into()))
            }
            (None, status) => Ok(Err(status)),
        }
    }

    /// Reads a final reply, which came in a frame of the given size, and fills the columns that it
    /// determines.
    pub fn read(
        member: &Member<'_>,
        frame_bytes: u64,
        want: Want,
        row: Option<&mut Operation>,
    ) -> Reply {
        let header = &member.header;
        let mut reply = Reply {
            status: Status(header.status_or_channel_sequence),
            session_id: header.session_id,
            tree_id: header.tree_id().unwrap_or_default(),
            ..Reply::default()
        };
        let mut transferred = None;
        if !is_error_response(header, member.bytes) {
            transferred = reply.body(header, member.bytes);
            // Possibly only the head of a read's payload is here; the frame's size limits the count.
            if header.command == Command::READ {
                let most = u32::try_from(frame_bytes).unwrap_or(u32::MAX);
                transferred = transferred.map(|bytes| bytes.min(most));
            }
        }
        reply.transferred = transferred.unwrap_or_default();
        if want == Want::Message {
            reply.message = member.bytes.to_vec();
        }
        if let Some(row) = row {
            reply.fill(row, transferred);
        }
        reply
    }

    fn body(&mut self, header: &Header, bytes: &[u8]) -> Option<u32> {
        match header.command {
            Command::CREATE => {
                self.open = open(bytes);
                None
            }
            Command::CLOSE => {
                self.closed_bytes =
                    CloseResponse(bytes).attributes().map(|attributes| attributes.end_of_file);
                None
            }
            Command::READ => ReadResponse(bytes).data_length(),
            Command::WRITE => WriteResponse(bytes).count(),
            Command::IOCTL => IoctlResponse(bytes).output_count(),
            Command::QUERY_DIRECTORY => QueryDirectoryResponse(bytes).output_buffer_length(),
            Command::QUERY_INFO => QueryInfoResponse(bytes).output_buffer_length(),
            Command::CHANGE_NOTIFY => ChangeNotifyResponse(bytes).output_buffer_length(),
            _ => None,
        }
    }

    /// The fields for the table of opens that are not columns.
    pub fn told(&self) -> Option<Box<CreateResult>> {
        let result = match (&self.open, self.closed_bytes) {
            (Some(open), _) => CreateResult {
                directory: Some(open.directory),
                size_bytes: Some(open.size_bytes),
                durable: open.durable.then_some(true),
                persistent: open.persistent,
                disk_file_id: None,
            },
            (None, Some(size)) => {
                CreateResult { size_bytes: Some(size), ..CreateResult::default() }
            }
            (None, None) => return None,
        };
        Some(Box::new(result))
    }

    fn fill(&self, row: &mut Operation, transferred: Option<u32>) {
        row.set_status(self.status.0);
        row.set_status_name(code::status_name(self.status.0));
        if let Some(bytes) = transferred {
            row.set_transferred_bytes(u64::from(bytes));
        }
        if let Some(open) = &self.open {
            row.set_file_id(file_bytes(open.file_id));
            row.set_oplock_granted(code::oplock(open.oplock.0));
            if let Some(lease) = &open.lease {
                row.set_lease_granted(code::lease(lease.state.0));
            }
        }
    }
}

fn open(bytes: &[u8]) -> Option<Open> {
    let view = CreateResponse(bytes);
    let mut open = Open {
        file_id: view.file_id()?,
        size_bytes: view.end_of_file()?,
        directory: view.file_attributes()?.contains(FileAttributes::DIRECTORY),
        oplock: view.oplock_level()?,
        lease: None,
        durable: false,
        persistent: None,
    };
    for context in view.contexts() {
        match context.response() {
            ResponseContext::Lease(lease) => open.lease = Some(lease),
            ResponseContext::Durable => open.durable = true,
            ResponseContext::DurableV2 { flags, .. } => {
                open.durable = true;
                open.persistent = Some(flags.contains(DurableFlags::PERSISTENT));
            }
            _ => {}
        }
    }
    Some(open)
}
