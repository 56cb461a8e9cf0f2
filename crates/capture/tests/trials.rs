//! Rare messages in the inputs of `../shared/trials/inputs/captures`: each value is the one that
//! `decoder.md` there gives as right.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::decode::{Decoded, Row, decode_files, single};

/// Decodes a file below the shared folder, or skips.
fn shared(path: &str) -> Option<Decoded> {
    Some(decode_files(vec![smbscope_testing::shared(path)?], &single()).unwrap())
}

fn trial(name: &str) -> Option<Decoded> {
    shared(&format!("trials/inputs/captures/{name}.pcap.gz"))
}

/// The row whose request is in that frame, and these columns of it.
fn columns(decoded: &Decoded, frame: u64, names: &[&str]) -> Vec<Option<String>> {
    let rows = decoded.rows();
    let is_it = |row: &&Row| row.get("request_frame") == Some(&frame.to_string());
    let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no request in frame {frame}"));
    names.iter().map(|&name| row.get(name).cloned()).collect()
}

fn texts<const N: usize>(values: [&str; N]) -> Vec<Option<String>> {
    values.map(|value| (value != "-").then(|| value.to_owned())).to_vec()
}

#[test]
fn operations_related_to_a_tree_connect_are_in_its_tree() {
    let Some(decoded) = trial("compounds") else { return };
    let rows = decoded.rows();
    let rows = rows.iter().filter(|row| row["request_frame"] == "26");
    let seen: Vec<_> = rows.map(|row| [&row["command"], &row["share"], &row["tree_id"]]).collect();
    let share = r"\\srv\two";
    assert_eq!(seen, [["TreeConnect", share, "9"], ["Create", share, "9"], ["Close", share, "9"]]);
}

#[test]
fn who_is_refused_is_known_without_a_session() {
    let Some(decoded) = trial("logon_sid0") else { return };
    let names = ["user", "session_id", "status_name"];
    assert_eq!(columns(&decoded, 8, &names), texts([r"EX\eve", "-", "STATUS_ACCESS_DENIED"]));
}

#[test]
fn a_referral_is_requested_for_a_path_of_the_namespace() {
    let Some(decoded) = trial("ioctl_locks") else { return };
    let names = ["path", "share", "tree_id"];
    assert_eq!(columns(&decoded, 24, &names)[..2], texts([r"\srv\data", "-"]));
    assert!(columns(&decoded, 24, &names)[2].is_some());
}

#[test]
fn a_server_copies_shares_and_releases_ranges() {
    let Some(decoded) = trial("ioctl_locks") else { return };
    let names = ["detail", "offset_bytes", "requested_bytes", "transferred_bytes"];
    for (frame, expected) in [
        (18, ["FSCTL_SRV_COPYCHUNK", "0", "1548576", "1548576"]),
        (20, ["FSCTL_SRV_COPYCHUNK_WRITE", "0", "1548576", "1548576"]),
        // Refused, with the limits of the server.
        (22, ["FSCTL_SRV_COPYCHUNK", "0", "1548576", "12"]),
        (34, ["FSCTL_DUPLICATE_EXTENTS_TO_FILE", "0", "65536", "65536"]),
        // It announces a range that is not in it.
        (38, ["FSCTL_FILE_LEVEL_TRIM", "-", "-", "0"]),
    ] {
        assert_eq!(columns(&decoded, frame, &names), texts(expected), "frame {frame}");
    }
}

#[test]
fn several_locked_ranges_are_not_one() {
    let Some(decoded) = trial("ioctl_locks") else { return };
    let names = ["detail", "offset_bytes", "requested_bytes"];
    assert_eq!(columns(&decoded, 47, &names), texts(["Lock of 2 ranges", "0", "-"]));
    assert_eq!(columns(&decoded, 40, &names), texts(["Lock", "0", "10"]));
}

#[test]
fn a_raw_write_without_a_final_reply_is_answered() {
    let Some(decoded) = trial("smb1_raw") else { return };
    assert_eq!(decoded.coverage[0].operations_unanswered, 0);
    let names = ["response_frame", "elapsed_ns", "transferred_bytes", "waits"];
    assert_eq!(columns(&decoded, 20, &names), texts(["21", "-", "3000", "-"]));
    assert_eq!(columns(&decoded, 12, &names), texts(["15", "6500000", "3000", "-"]));
}

#[test]
fn acknowledgements_of_leases_are_in_a_tree() {
    let Some(decoded) = shared("captures/smb302-signed-leases-compounds.pcap") else { return };
    let rows = decoded.rows();
    let is_it = |row: &&Row| row.get("detail").is_some_and(|text| text == "Lease acknowledgement");
    let trees: Vec<_> = rows.iter().filter(is_it).map(|row| row.get("tree_id")).collect();
    assert_eq!(trees.len(), 18);
    assert!(trees.iter().all(|tree| tree.is_some_and(|tree| tree == "1")), "{trees:?}");
}
