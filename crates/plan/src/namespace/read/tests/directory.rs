//! LDIF: the shape of a live forest, and a blob built by hand from the specification.

use super::*;
use crate::namespace::write::{Allowed, write};

/// An entry as `ldifde` and `ldbsearch` print it.
fn version_2() -> String {
    let list = include_str!("../../../../tests/namespace/targetlistv2.xml");
    let utf16: Vec<u8> = list.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encoded = STANDARD.encode(utf16);
    let folded: Vec<String> = encoded
        .as_bytes()
        .chunks(70)
        .map(|piece| String::from_utf8(piece.to_vec()).unwrap())
        .collect();
    let folded = folded.join("\n ");
    format!(
        "# extended LDIF\ndn: CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\nobjectClass: msDFS-NamespaceAnchor\nmsDFS-SchemaMajorVersion: 2\n\n\
         dn: CN=Public,CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\nobjectClass: top\nobjectClass: msDFS-Namespacev2\n\
         msDFS-NamespaceIdentityGUIDv2:: 5t1nWb5cQkS+ZCr2ynW8yg==\nmsDFS-Ttlv2: 300\nmsDFS-Propertiesv2: ABDE=on\nmsDFS-Propertiesv2: ReferralSiteCosting=on\n\
         msDFS-Propertiesv2: State=okay\nmsDFS-LastModifiedv2: 20221209084040.0Z\nmsDFS-TargetListv2:: {folded}\n\n\
         dn: CN=link-1,CN=Public,CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\nobjectClass: msDFS-Linkv2\n\
         msDFS-NamespaceIdentityGUIDv2:: 5t1nWb5cQkS+ZCr2ynW8yg==\nmsDFS-LinkIdentityGUIDv2:: AAAAAAAAAAAAAAAAAAAAAA==\n\
         msDFS-LinkPathv2: /Quarterly Reports (FY26)/one\nmsDFS-Ttlv2: -1\nmsDFS-Commentv2:: QsO8cm8=\nmsDFS-Propertiesv2: State=Offline\nmsDFS-Propertiesv2: Interlink=on\n\
         msDFS-LinkSecurityDescriptorv2:: AQID\nwhenCreated: 20221209084040.0Z\nmsDFS-TargetListv2:: {folded}\n\n\
         dn: CN=link-2,CN=Gone,CN=Gone,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\nobjectClass: msDFS-Linkv2\nmsDFS-LinkPathv2: /lost\nmsDFS-TargetListv2:: {folded}\n\n\
         dn: CN=link-3,CN=Public,CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\nobjectClass: msDFS-DeletedLinkv2\nmsDFS-LinkPathv2: /old\n"
    )
}

#[test]
fn objects_of_mode_2008_are_read() {
    let reading = reading(&version_2());
    let read = &reading.namespaces[0];
    let namespace = &read.namespace;
    assert_eq!(read.form, Form::DirectoryV2);
    assert_eq!((namespace.host.as_str(), namespace.name.as_str()), ("contoso.com", "Public"));
    assert_eq!(namespace.flags.access_based_enumeration, Some(true));
    assert_eq!(namespace.flags.site_costing, Some(true));
    assert_eq!(namespace.flags.root_scalability, Some(false));
    assert_eq!(namespace.targets[0].server, "STORE1");
    assert_eq!(namespace.targets[0].priority_class, Some(PriorityClass::SiteCostNormal));
    let link = &namespace.links[0];
    assert_eq!(link.path, "Quarterly Reports (FY26)\\one");
    assert_eq!((link.ttl_s, link.state), (Some(u32::MAX), State::Offline));
    assert_eq!(link.comment.as_deref(), Some("Büro"));
    assert_eq!(link.security.as_deref(), Some(&[1, 2, 3][..]));
    assert_eq!(link.other["v2:whenCreated"], "20221209084040.0Z");
    assert_eq!(link.other["interlink"], "yes");
    assert_eq!(reading.orphans[0].link.path, "lost");
    assert_eq!(reading.deleted.len(), 1);
}

#[test]
fn what_was_read_is_written_and_read_again() {
    let first = reading(&version_2()).namespaces[0].namespace.clone();
    let written = write(&first, Form::DirectoryV2, &Allowed::default()).unwrap();
    assert_eq!(written.losses, []);
    let again = one(std::str::from_utf8(&written.files[0].bytes).unwrap());
    assert_eq!(again.namespace, first);
    let text = String::from_utf8(written.files[0].bytes.clone()).unwrap();
    assert!(
        text.contains(
            "\ndn: CN=Public,CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\n"
        )
    );
    assert!(text.contains("\nmsDFS-LinkPathv2: /Quarterly Reports (FY26)/one\n"));
    assert!(text.lines().all(|line| line.len() <= 76));
}

/// Bytes as the specification orders them: lengths before strings, little-endian.
fn z(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    [&u16::try_from(units.len()).unwrap().to_le_bytes()[..], &units].concat()
}

fn n(value: u32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

fn block(bytes: &[u8]) -> Vec<u8> {
    [n(u32::try_from(bytes.len()).unwrap()), bytes.to_vec()].concat()
}

fn element(name: &str, guid: u8, prefix: &str, kind: u32, ttl_s: u32, targets: &[u8]) -> Vec<u8> {
    let data = [
        vec![guid; 16],
        z(prefix),
        z(prefix),
        n(kind),
        n(1),
        z("note"),
        vec![7; 8],
        vec![0; 16],
        n(3),
        block(targets),
        block(&[0; 4]),
        n(ttl_s),
    ]
    .concat();
    [z(name), block(&data)].concat()
}

fn targets(all: &[(u64, &str, &str)]) -> Vec<u8> {
    let entries = all.iter().flat_map(|(time, server, share)| {
        let entry = [time.to_le_bytes().to_vec(), n(2), n(2), z(server), z(share)].concat();
        block(&entry)
    });
    [n(u32::try_from(all.len()).unwrap()), entries.collect()].concat()
}

pub(super) fn blob() -> Vec<u8> {
    let link = "\\domainroot\\09090909-0909-0909-0909-090909090909";
    let root = targets(&[(0, "ROOT1", "Public")]);
    // Rank 3 of the class global high, and a time of change.
    let of_link = targets(&[(1 << 5 | 3, "fs1", "accounting"), (1 << 40, "fs2", "accounting")]);
    [
        n(0),
        n(3),
        z("\\siteroot"),
        block(&[0; 20]),
        element("\\domainroot", 8, "\\CONTOSO\\Public", 0x81 | 0x40, 300, &root),
        element(link, 9, "\\CONTOSO\\Public\\a\\Accounting", 0x8001, 1800, &of_link),
    ]
    .concat()
}

pub(super) fn version_1(blob: &[u8]) -> String {
    format!(
        "dn: CN=Public,CN=Dfs-Configuration,CN=System,DC=contoso,DC=com\nobjectClass: top\nobjectClass: fTDfs\ncn: Public\n\
         remoteServerName: \\\\ROOT1\\Public\nremoteServerName: \\\\ROOT9\\Public\nremoteServerName: *\npKT:: {}\n",
        STANDARD.encode(blob)
    )
}

#[test]
fn the_blob_of_mode_2000_is_read_and_written_byte_for_byte() {
    let blob = blob();
    let read = one(&version_1(&blob));
    assert_eq!((read.form, read.blob_bytes), (Form::DirectoryV1, Some(blob.len() as u64)));
    assert_eq!(read.root_servers_differ, ["\\\\ROOT9\\Public"]);
    let namespace = &read.namespace;
    assert_eq!((namespace.host.as_str(), namespace.kind), ("CONTOSO", Some(Kind::DomainV1)));
    assert_eq!(
        (namespace.flags.site_costing, namespace.flags.target_failback),
        (Some(true), Some(false))
    );
    let link = &namespace.links[0];
    assert_eq!((link.path.as_str(), link.ttl_s), ("a\\Accounting", Some(1800)));
    assert_eq!((link.comment.as_deref(), link.flags.target_failback), (Some("note"), Some(true)));
    assert_eq!(link.targets[0].priority_class, Some(PriorityClass::GlobalHigh));
    assert_eq!(link.targets[0].priority_rank, Some(3));
    assert_eq!(link.targets[1].other["v1:pKT/time"], (1_u64 << 40).to_string());
    let written = write(namespace, Form::DirectoryV1, &Allowed::default()).unwrap();
    let text = String::from_utf8(written.files[0].bytes.clone()).unwrap();
    let unfolded = text.replace("\n ", "");
    let line = unfolded.lines().find_map(|line| line.strip_prefix("pKT:: ")).unwrap();
    assert_eq!(STANDARD.decode(line).unwrap(), blob);
    assert!(unfolded.contains("\nremoteServerName: \\\\ROOT9\\Public\n"));
}

#[test]
fn the_estimate_of_the_blob_is_its_size() {
    let blob = blob();
    let namespace = one(&version_1(&blob)).namespace;
    assert_eq!(crate::namespace::write::namespace_bytes(&namespace), blob.len() as u64);
}
