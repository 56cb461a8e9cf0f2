//! Tests of file sets as a whole.

use std::collections::HashSet;

use super::*;
use crate::workload::Workload;

fn homefolder() -> Workload {
    Workload::built_in("homefolder").unwrap()
}

#[test]
fn a_user_has_about_80_mb_and_no_path_twice() {
    let workload = homefolder();
    let files = workload.file_set(7, Scale::FULL);
    for user in [0, 1, 4_321, u64::MAX] {
        let megabytes = files.user_bytes(user) as f64 / 1e6;
        assert!((78.0..84.0).contains(&megabytes), "{megabytes}");
        let paths: Vec<String> = files.user(user).map(|spec| spec.path.to_lowercase()).collect();
        assert_eq!(paths.iter().collect::<HashSet<_>>().len(), paths.len());
        // Folders come before their contents.
        for (at, path) in paths.iter().enumerate() {
            if let Some((folder, _)) = path.rsplit_once('\\') {
                assert!(paths[..at].iter().any(|before| before == folder), "{path}");
            }
        }
    }
}

#[test]
fn every_user_has_the_same_sizes_in_another_order() {
    let workload = homefolder();
    let files = workload.file_set(7, Scale::FULL);
    let blocks = |user| -> Vec<u64> {
        let documents = files.files(user).filter(|file| file.pool == 0);
        documents.map(|file| file.bytes.div_ceil(BLOCK_BYTES)).collect()
    };
    let (mut a, mut b) = (blocks(1), blocks(2));
    assert_ne!(a, b);
    a.sort_unstable();
    b.sort_unstable();
    assert_eq!(a, b);
    assert_eq!(a.iter().sum::<u64>(), 15 * 39);
}

#[test]
fn a_scale_takes_away_repeats_first_and_then_sizes() {
    let workload = homefolder();
    let pools = |factor: f64| workload.file_set(7, Scale::new(factor).unwrap()).pools().to_vec();
    assert_eq!(pools(1.0), workload.pools);
    let half = pools(0.5);
    assert_eq!((half[0].repeat, &half[0].sizes), (8, &workload.pools[0].sizes));
    let tenth = pools(0.1);
    assert_eq!((tenth[0].repeat, &tenth[0].sizes), (2, &workload.pools[0].sizes));
    assert_eq!(tenth[1].repeat, 1);
    assert_ne!(tenth[1].sizes, workload.pools[1].sizes);
    let small = workload.file_set(7, Scale::new(0.001).unwrap());
    assert!(small.user_bytes(1) < 6_000_000);
    assert!(
        Scale::new(0.0).is_err() && Scale::new(f64::NAN).is_err() && Scale::new(101.0).is_err()
    );
    for factor in [0.2, 0.5, 2.0] {
        let files = workload.file_set(7, Scale::new(factor).unwrap());
        let ratio = files.user_bytes(3) as f64 / 80.4e6;
        assert!((0.8..1.25).contains(&(ratio / factor)), "{factor}: {ratio}");
    }
}

/// Pinned: files made by an older version must still be the files of this one.
#[test]
fn stays_the_same_from_version_to_version() {
    let workload = homefolder();
    let files = workload.file_set(7, Scale::FULL);
    let document = files.user(3).find(|spec| spec.kind == EntryKind::File).unwrap();
    let new = files.new_file(3, 5, 70);
    let shown = format!("{} {} {} {}", document.path, document.bytes, new.index, new.bytes);
    assert_eq!(shown, PINNED);
}

const PINNED: &str = "Documents\\Budget\\payroll market 000.docx 292264 6 1182167";

#[test]
fn restore_covers_the_changes_of_runs() {
    let workload = homefolder();
    let files = workload.file_set(7, Scale::FULL);
    let restore = files.restore(3);
    assert!(restore.volatile.iter().all(|spec| spec.class == FileClass::Volatile));
    assert_eq!(restore.volatile.len(), 19 + 20 + 1);
    let document = files.user(3).find(|spec| spec.kind == EntryKind::File).unwrap().path;
    assert!(!restore.is_surplus(&document) && !restore.is_surplus(&document.to_uppercase()));
    assert!(restore.is_ours(&document));
    assert!(restore.is_surplus(&document.replace("\\Budget\\", "\\Budget\\~$")));
    assert!(restore.is_surplus("Work\\~WRD00012.tmp"));
    let new = files.new_paths(3).next().unwrap();
    assert!(restore.is_surplus(&new) && restore.is_ours(&new), "{new}");
    // Files from other sources are neither.
    assert!(!restore.is_surplus("New\\holiday.jpg") && !restore.is_ours("New\\holiday.jpg"));
}

#[test]
fn times_are_of_2022_and_2023() {
    for key in 0..100 {
        let seconds =
            FileRef { pool: 0, index: 0, bytes: 0, key }.modified() / 10_000_000 - 11_644_473_600;
        assert!((1_640_995_200..1_704_067_200).contains(&seconds), "{seconds}");
    }
}
