//! Table `trees`: shares that a session connected to (MS-SMB2 section 2.2.9, TREE_CONNECT).

use crate::row::table;

table! {
    /// One connected share of one session.
    Tree, "trees" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        session_id: u64, None, Public, "The session.";
        tree_id: u64, None, Public, "TreeId (SMB1: TID).";
        connection: u64, None, Public, "The connection on which the tree was first seen.";
        share: Option<String>, None, Path, "The share, as \\\\server\\share.";
        named_by: Option<String>, None, Public, "smbstatus if the share was read from Samba's own tables, because it was connected before the recording; null if the recording shows it.";
        share_type: Option<String>, None, Public, "Disk, pipe or printer.";
        share_flags: Option<u64>, None, Public, "ShareFlags of the response.";
        capabilities: Option<u64>, None, Public, "Capabilities of the response.";
        continuous_availability: Option<bool>, None, Public, "Whether handles survive a failover, so that writes must be stable (SMB2_SHARE_CAP_CONTINUOUS_AVAILABILITY).";
        encrypt_data: Option<bool>, None, Public, "Whether the share requires encryption.";
        start as "started_at": i64, Time, Public, "First request.";
        end as "ended_at": i64, Time, Public, "Last response.";
        operations: u64, Count, Public, "Operations.";
        guid: Option<String>, None, Public, "GUID by which events of Windows name the tree connect.";
    }
}
