//! Table `referrals`: targets in DFS referral responses (MS-DFSC section 2.2.5).

use crate::row::table;

table! {
    /// One target that a DFS referral answered (MS-DFSC section 2.2.5).
    Referral, "referrals" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        operation: u64, None, Public, "Number of the operation that asked.";
        path: Option<String>, None, Path, "The path that was asked for.";
        dfs_path: Option<String>, None, Path, "The part of it that the answer is about.";
        target: Option<String>, None, Path, "Where it really is.";
        version: Option<u64>, None, Public, "Version of the referral entry.";
        root: Option<bool>, None, Public, "Whether the target is a namespace's root, not a link's target.";
        time_to_live_s: Option<u64>, None, Public, "Seconds that the client may remember it.";
    }
}
