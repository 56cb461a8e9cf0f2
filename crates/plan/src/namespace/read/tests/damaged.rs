//! Damaged files: what and where.

use super::directory::{blob, version_1};
use super::*;

fn error(text: &str) -> ReadError {
    read(&files(&[("f", text)])).unwrap_err()
}

#[track_caller]
fn is_damaged(text: &str, line: usize, message: &str) {
    let error = error(text);
    assert!(error.message.contains(message), "{error}");
    assert_eq!((error.file.as_str(), error.line), ("f", line), "{error}");
}

#[test]
fn damaged_exports_say_what_and_where() {
    let root = "<?xml version=\"1.0\"?>\n<Root Name=\"\\\\d\\n\" State=\"1\" Timeout=\"300\">\n";
    is_damaged(
        &format!("{root}<Link Name=\"a\">"),
        3,
        "ends inside the element Root, after 0 whole links",
    );
    is_damaged(
        &format!("{root}<Link Name=\"a\" Timeout=\"soon\"></Link></Root>"),
        3,
        "\"soon\" is not a number",
    );
    is_damaged(&format!("{root}\n<Link></Link></Root>"), 4, "no attribute Name");
    is_damaged(&format!("{root}<Target Server=\"s\" State=\"2\"/></Root>"), 3, "no Folder");
    is_damaged(
        &format!("{root}<Target State=\"2\">s</Target></Root>"),
        3,
        "is not \\\\server\\share",
    );
    is_damaged(&format!("{root}</Link></Root>"), 3, "damaged XML");
    let many = "<Target Server=\"s\" Folder=\"f\" State=\"2\"/>".repeat(1_001);
    is_damaged(&format!("{root}<Link Name=\"a\">{many}"), 3, "more than 1000 targets");
    is_damaged("<a/>", 1, "without an element Root");
    is_damaged("<Root Name=\"n\"/>", 1, "is not \\\\domain\\namespace");
    is_damaged("<Root Name=\"\\\\a\\b\" Attributes=\"x\"/>", 1, "are not a number");
}

#[test]
fn damaged_directories_say_what_and_where() {
    is_damaged("dn: CN=a\npKT:: ###\n", 2, "damaged base64 in the value of pKT");
    is_damaged("dn: CN=a\nobjectClass: fTDfs\n", 1, "no attribute pKT");
    is_damaged("dn: CN=a\nword\n", 2, "is not NAME: VALUE");
    is_damaged("dn: CN=a\nx:< file:///x\n", 2, "in another file");
    is_damaged("dn: CN=a\nchangetype: delete\n", 2, "a change of kind");
    is_damaged("dn: CN=a\nmsDFS-LinkPathv2: /a\n", 1, "no attribute msDFS-TargetListv2");
    is_damaged(
        "dn: CN=a,DC=b\nmsDFS-LinkPathv2: /a\nmsDFS-TargetListv2: <targets targetCount=\"2\"></targets>\n",
        3,
        "announces 2 and has 0",
    );
    is_damaged(
        "dn: CN=a,DC=b\nmsDFS-LinkPathv2: /a\nmsDFS-TargetListv2: <targets>\n",
        3,
        "the value is cut",
    );
    is_damaged(
        "dn: CN=a,DC=b\nmsDFS-LinkPathv2: /a\nmsDFS-Ttlv2: x\nmsDFS-TargetListv2: <targets></targets>\n",
        3,
        "is not a number of seconds",
    );
}

#[test]
fn every_cut_and_changed_blob_is_survived_and_named() {
    let blob = blob();
    for length in 0..blob.len() {
        let error = error(&version_1(&blob[..length]));
        assert!(error.message.contains("damaged blob") || length == 0, "{error}");
    }
    for at in 0..blob.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = blob.clone();
            changed[at] = value;
            // Read or refused, never a panic; what is read is written and read again.
            let Ok(reading) = read(&files(&[("f", &version_1(&changed))])) else { continue };
            assert_eq!(reading.namespaces.len(), 1);
        }
    }
}

#[test]
fn other_damage_says_what_and_where() {
    is_damaged("Entry: \\d\\n\nExpires in soon\n", 2, "no number of seconds");
    is_damaged("Entry: \\d\\n\n 0:[\\s\\n] AccessStatus: bad\n", 2, "is not a number");
    is_damaged("Client: a\nCollected: yesterday\n", 2, "is not a time");
    is_damaged(
        "Domain Root with 2 Links [Blob Size: 1 bytes]\nRoot Name=\"\\\\d\\n\" State=\"1\" Timeout=\"1\"\nRoot with 2 Links\n",
        3,
        "announces 2 links, and 0 follow",
    );
    is_damaged("Path   State\n----   -----\n\\\\d\\... Online\n", 3, "is cut");
    is_damaged("[{\"Path\": }]", 1, "damaged JSON");
    is_damaged("[{\"a\": 1}]", 1, "without an object");
    is_damaged("New-DfsnFolder -Path $x -TargetPath 'y'\n", 1, "is an expression");
    is_damaged("New-DfsnFolder -Path 'x\n", 1, "closing quote");
    is_damaged("\nNew-DfsnFolder -Path 'x' -TargetPath 'y'\n", 2, "is not \\\\domain\\namespace");
    is_damaged("a\tmsdfs:x\n", 1, "is not server\\share");
    is_damaged("ln -s \"msdfs:$(x)\" a\nln -s msdfs:a\\b c\n", 1, "only literal words");
    is_damaged("[global]\nx\n", 2, "is not NAME = VALUE");
    is_damaged("hello\n", 1, "no known form");
    is_damaged("", 1, "no known form");
}

#[test]
fn every_cut_of_every_sample_is_survived() {
    let samples = [
        include_str!("../../../../tests/namespace/export-2003.xml"),
        include_str!("../../../../tests/namespace/export-2008.xml"),
        include_str!("../../../../tests/namespace/view-2003-2008.txt"),
        include_str!("../../../../tests/namespace/pktinfo.txt"),
        include_str!("../../../../tests/namespace/Get-DfsnRoot.txt"),
        include_str!("../../../../tests/namespace/Get-DfsnFolderTarget.txt"),
    ];
    for sample in samples {
        let whole = read(&files(&[("f", sample)])).unwrap();
        let links = |reading: &Reading| {
            reading.namespaces.iter().map(|one| one.namespace.links.len()).sum::<usize>()
        };
        for length in (0..sample.len()).filter(|at| sample.is_char_boundary(*at)) {
            if let Ok(cut) = read(&files(&[("f", &sample[..length])])) {
                assert!(links(&cut) <= links(&whole));
                let _ = crate::namespace::check::check(
                    &cut,
                    &crate::namespace::check::Context::default(),
                );
            }
        }
    }
    // A cut export is refused: half a namespace would be taken for a whole one.
    let export = samples[0].trim_end();
    for length in export.find("<Root").unwrap()..export.len() {
        assert!(read(&files(&[("f", &export[..length])])).is_err(), "{length}");
    }
}
