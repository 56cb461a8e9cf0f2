//! Table `handles`: opens, from Create to Close. They are many, so their text is shared.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One open, from Create to Close.
    Handle, "handles" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        handle: u64, None, Public, "Number of the open, unique in its recording.";
        connection: u64, None, Public, "The connection on which it was opened or first seen.";
        session_id: Option<u64>, None, Public, "The session.";
        tree_id: Option<u64>, None, Public, "The tree.";
        client: Arc<str>, None, Machine, "The client's address.";
        user: Option<Arc<str>>, None, Person, "User.";
        share: Option<Arc<str>>, None, Path, "Share.";
        path: Option<Arc<str>>, None, Path, "File or directory; null if it was opened before the capture began.";
        file_id: [u8; 16], None, Public, "FileId (persistent and volatile, as on the wire; SMB1: FID in the first two bytes).";
        directory: Option<bool>, None, Public, "Whether it is a directory.";
        opened_at: Option<i64>, Time, Public, "End of the Create response; null if it was opened before the capture began.";
        closed_at: Option<i64>, Time, Public, "End of the response to the Close, TreeDisconnect or Logoff that ended it, or end of its connection; null if it stayed open.";
        create_operation: Option<u64>, None, Public, "Number of the Create.";
        close_operation: Option<u64>, None, Public, "Number of the operation that ended it: Close, TreeDisconnect or Logoff.";
        desired_access: Option<u64>, None, Public, "DesiredAccess.";
        share_access: Option<u64>, None, Public, "ShareAccess.";
        create_options: Option<u64>, None, Public, "CreateOptions.";
        write_through: Option<bool>, None, Public, "Whether it was opened write-through.";
        oplock: Option<Cow<'static, str>>, None, Public, "Granted oplock level.";
        lease: Option<Cow<'static, str>>, None, Public, "Granted lease state.";
        durable: Option<bool>, None, Public, "Whether the server granted a durable handle.";
        persistent: Option<bool>, None, Public, "Whether the server granted a persistent handle.";
        disk_file_id: Option<u64>, None, Public, "The file's number on disk (SMB2_CREATE_QUERY_ON_DISK_ID).";
        operations: u64, Count, Public, "Operations on it, including Create and Close.";
        reads: u64, Count, Public, "Reads.";
        writes: u64, Count, Public, "Writes.";
        read_bytes: u64, Bytes, Public, "Bytes read.";
        written_bytes: u64, Bytes, Public, "Bytes written.";
        size_bytes: Option<u64>, Bytes, Public, "The file's size according to the last response that contains it.";
        guid: Option<String>, None, Public, "GUID by which events of Windows name the open.";
    }
}
