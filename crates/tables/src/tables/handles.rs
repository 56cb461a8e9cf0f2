//! Table `handles`: opens, from Create to Close. They are many, so their text is shared.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One open, from Create to Close.
    Handle, "handles" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        handle: u64, None, Public, "Number of the open in its recording.";
        connection: u64, None, Public, "Connection on which it was opened or first seen.";
        session_id: Option<u64>, None, Public, "The session.";
        tree_id: Option<u64>, None, Public, "The tree.";
        client: Arc<str>, None, Machine, "The client's address.";
        user: Option<Arc<str>>, None, Person, "User.";
        share: Option<Arc<str>>, None, Path, "Share.";
        path: Option<Arc<str>>, None, Path, "File or directory; null when it was opened before the capture began.";
        file_id: [u8; 16], None, Public, "FileId (persistent and volatile, as on the wire; SMB1: FID in the first two bytes).";
        directory: Option<bool>, None, Public, "Whether it is a directory.";
        opened_at: Option<i64>, Time, Public, "End of the Create reply; null when it was opened before the capture began.";
        closed_at: Option<i64>, Time, Public, "End of the reply to the Close, or to the TreeDisconnect or Logoff that ended it, or of its connection; null when it stayed open.";
        create_operation: Option<u64>, None, Public, "Number of the Create.";
        close_operation: Option<u64>, None, Public, "Number of the operation that ended it: a Close, TreeDisconnect or Logoff.";
        desired_access: Option<u64>, None, Public, "DesiredAccess.";
        share_access: Option<u64>, None, Public, "ShareAccess.";
        create_options: Option<u64>, None, Public, "CreateOptions.";
        write_through: Option<bool>, None, Public, "Whether it was opened write-through.";
        oplock: Option<Cow<'static, str>>, None, Public, "Oplock level granted.";
        lease: Option<Cow<'static, str>>, None, Public, "Lease state granted.";
        durable: Option<bool>, None, Public, "Whether the server made the handle durable.";
        persistent: Option<bool>, None, Public, "Whether the server made the handle persistent.";
        disk_file_id: Option<u64>, None, Public, "The file's own number on disk (query on disk id).";
        operations: u64, Count, Public, "Operations on it, Create and Close included.";
        reads: u64, Count, Public, "Reads.";
        writes: u64, Count, Public, "Writes.";
        read_bytes: u64, Bytes, Public, "Bytes read.";
        written_bytes: u64, Bytes, Public, "Bytes written.";
        size_bytes: Option<u64>, Bytes, Public, "The file's size, as the last reply that tells it says.";
    }
}
