//! A build without the feature `sql` says so, and does everything else.

use super::{answer, capture, complaint};

#[test]
fn query_and_where_need_the_sql_feature() {
    for arguments in [
        vec!["query", "x.pcap", "select 1"],
        vec!["query", "--questions"],
        vec!["ops", &capture(), "--where", "status <> 0"],
    ] {
        let text = complaint(6, arguments);
        assert!(text.contains("this build has no SQL: build with default features"), "{text}");
    }
    assert_eq!(answer(["ops", &capture()]).lines().count(), 121);
}
