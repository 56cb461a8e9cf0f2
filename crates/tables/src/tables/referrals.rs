//! Table `referrals`: targets in DFS referral responses (MS-DFSC section 2.2.5).

use crate::row::table;

table! {
    /// One target that a DFS referral answered (MS-DFSC section 2.2.5).
    Referral, "referrals" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        operation: u64, None, Public, "Number of the operation that requested the referral.";
        path: Option<String>, None, Path, "The requested path.";
        dfs_path: Option<String>, None, Path, "The part of the path that the entry applies to.";
        target: Option<String>, None, Path, "The target to which the path resolves.";
        version: Option<u64>, None, Public, "Version of the referral entry.";
        root: Option<bool>, None, Public, "Whether the target is a namespace root rather than the target of a link.";
        time_to_live_s: Option<u64>, None, Public, "Seconds for which the client may cache the entry.";
    }
}
