//! LDIF of directory objects: `fTDfs` with its blob, and `msDFS-*`.
//!
//! \[MS-DFSNM\] 2.3.3 and 2.3.4, RFC 2849. Identities that the namespace does not have are derived from its paths, so that
//! writing twice gives the same.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::form::{Form, INTERLINK, STATE_DETAIL, priority_name};
use super::super::model::{Flags, Link, Namespace, State, Target};
use super::super::read::{
    BASE64, PLACEHOLDER_TIME, TARGET_LIST_NAMESPACE, derived_guid, guid_of, link_dn, namespace_dn,
    remote_servers,
};
use super::blob;
use super::express::{LINK_TTL_S, ROOT_TTL_S};
use crate::input::text::escape_xml;

/// Columns of a line before it is folded.
const COLUMNS: usize = 76;

/// The object of Windows 2000 mode.
pub(super) fn write_v1(namespace: &Namespace) -> String {
    let mut out = Out(String::from("version: 1\n\n"));
    out.attribute("dn", namespace_dn(namespace, Form::DirectoryV1).as_bytes());
    for class in ["top", "fTDfs"] {
        out.attribute("objectClass", class.as_bytes());
    }
    out.or_kept(&namespace.other, "v1:", "cn", &namespace.name);
    out.or_kept(&namespace.other, "v1:", "name", &namespace.name);
    let path = format!("\\{}\\{}", namespace.host, namespace.name);
    if !namespace.other.contains_key("v1:pKTGuid") {
        out.attribute("pKTGuid", &derived_guid(&path));
    }
    match namespace.other.get("v1:remoteServerName") {
        Some(values) => out.values("remoteServerName", values),
        None => {
            for server in remote_servers(&namespace.targets) {
                out.attribute("remoteServerName", server.as_bytes());
            }
        }
    }
    out.attribute("pKT", &blob::write(namespace));
    out.others(&namespace.other, "v1:", &["dn", "cn", "name", "remoteServerName"]);
    out.0
}

/// The objects of Windows Server 2008 mode.
pub(super) fn write_v2(namespace: &Namespace) -> String {
    let mut out = Out(String::with_capacity(2048 * (namespace.links.len() + 1)));
    out.0.push_str("version: 1\n\n");
    let dn = namespace_dn(namespace, Form::DirectoryV2);
    if let Some((_, anchor)) = dn.split_once(',') {
        out.attribute("dn", anchor.as_bytes());
        for class in ["top", "msDFS-NamespaceAnchor"] {
            out.attribute("objectClass", class.as_bytes());
        }
        out.attribute("msDFS-SchemaMajorVersion", b"2");
        out.0.push('\n');
    }
    let root = format!("\\{}\\{}", namespace.host, namespace.name);
    let root_guid = derived_guid(&root);
    let other = &namespace.other;
    out.attribute("dn", dn.as_bytes());
    for class in ["top", "msDFS-Namespacev2"] {
        out.attribute("objectClass", class.as_bytes());
    }
    out.or_kept(other, "v2:", "cn", &namespace.name);
    out.or_kept(other, "v2:", "name", &namespace.name);
    out.or_kept(other, "v2:", "msDFS-SchemaMajorVersion", "2");
    out.or_kept(other, "v2:", "msDFS-SchemaMinorVersion", "0");
    for name in ["msDFS-NamespaceIdentityGUIDv2", "msDFS-GenerationGUIDv2"] {
        out.guid(other, name, &root_guid);
    }
    out.or_kept(other, "v2:", "msDFS-LastModifiedv2", PLACEHOLDER_TIME);
    out.ttl(namespace.ttl_s.unwrap_or(ROOT_TTL_S));
    if let Some(comment) = &namespace.comment {
        out.attribute("msDFS-Commentv2", comment.as_bytes());
    }
    out.properties(&namespace.flags, namespace.state, other);
    out.attribute("msDFS-TargetListv2", &target_list(&namespace.targets));
    out.others(other, "v2:", &WRITTEN);
    let namespace_guid = other
        .get("v2:msDFS-NamespaceIdentityGUIDv2")
        .and_then(|text| guid_of(text))
        .unwrap_or(root_guid);
    for link in &namespace.links {
        out.0.push('\n');
        out.link(namespace, link, &root, &namespace_guid);
    }
    out.0
}

/// Attributes that are written from fields or derived.
const WRITTEN: [&str; 10] = [
    "dn",
    "cn",
    "name",
    "msDFS-SchemaMajorVersion",
    "msDFS-SchemaMinorVersion",
    "msDFS-NamespaceIdentityGUIDv2",
    "msDFS-LinkIdentityGUIDv2",
    "msDFS-GenerationGUIDv2",
    "msDFS-LastModifiedv2",
    "msDFS-Propertiesv2",
];

/// The list of targets in UTF-16, as the directory keeps it.
fn target_list(targets: &[Target]) -> Vec<u8> {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-16\"?>\r\n<targets majorVersion=\"2\" minorVersion=\"0\" targetCount=\"{}\" xmlns=\"{TARGET_LIST_NAMESPACE}\">\r\n",
        targets.len()
    );
    for target in targets {
        text.push_str("  <target state=\"");
        text.push_str(if target.state == State::Offline { "offline" } else { "online" });
        text.push('"');
        let mut attribute = |name: &str, value: &str| {
            text.push(' ');
            text.push_str(name);
            text.push_str("=\"");
            escape_xml(&mut text, value);
            text.push('"');
        };
        if let Some(class) = target.priority_class {
            attribute("priorityClass", priority_name(class));
        }
        if let Some(rank) = target.priority_rank {
            attribute("priorityRank", &rank.to_string());
        }
        for (key, value) in &target.other {
            if let Some(name) = key.strip_prefix("v2:") {
                attribute(name, value);
            }
        }
        text.push_str(">\\\\");
        escape_xml(&mut text, &target.server);
        text.push('\\');
        escape_xml(&mut text, &target.share);
        text.push_str("</target>\r\n");
    }
    text.push_str("</targets>");
    let mut bytes = Vec::with_capacity(2 * text.len() + 2);
    bytes.extend_from_slice(&[0xff, 0xfe]);
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    bytes
}

struct Out(String);

impl Out {
    fn link(&mut self, namespace: &Namespace, link: &Link, root: &str, namespace_guid: &[u8; 16]) {
        let other = &link.other;
        let dn = link_dn(namespace, link);
        self.attribute("dn", dn.as_bytes());
        for class in ["top", "msDFS-Linkv2"] {
            self.attribute("objectClass", class.as_bytes());
        }
        for name in ["cn", "name"] {
            if let Some(value) = other.get(&format!("v2:{name}")) {
                self.values(name, value);
            }
        }
        let guid = derived_guid(&format!("{root}\\{}", link.path));
        self.guid(other, "msDFS-NamespaceIdentityGUIDv2", namespace_guid);
        self.guid(other, "msDFS-LinkIdentityGUIDv2", &guid);
        self.guid(other, "msDFS-GenerationGUIDv2", &guid);
        self.or_kept(other, "v2:", "msDFS-LastModifiedv2", PLACEHOLDER_TIME);
        let path = format!("/{}", link.path.replace('\\', "/"));
        self.attribute("msDFS-LinkPathv2", path.as_bytes());
        self.ttl(link.ttl_s.unwrap_or(LINK_TTL_S));
        if let Some(comment) = &link.comment {
            self.attribute("msDFS-Commentv2", comment.as_bytes());
        }
        self.properties(&link.flags, link.state, other);
        if let Some(security) = &link.security {
            self.attribute("msDFS-LinkSecurityDescriptorv2", security);
        }
        self.attribute("msDFS-TargetListv2", &target_list(&link.targets));
        self.others(other, "v2:", &WRITTEN);
    }

    /// One value: as it is, or in base64 where RFC 2849 requires it.
    fn attribute(&mut self, name: &str, value: &[u8]) {
        let safe = std::str::from_utf8(value).ok().filter(|text| {
            text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
                && !text.starts_with([' ', ':', '<'])
                && !text.ends_with(' ')
        });
        let start = self.0.len();
        self.0.push_str(name);
        match safe {
            Some(text) => {
                self.0.push_str(": ");
                self.0.push_str(text);
            }
            None => {
                self.0.push_str(":: ");
                STANDARD.encode_string(value, &mut self.0);
            }
        }
        self.fold(start, name.len() + 3);
        self.0.push('\n');
    }

    /// Folds the line that begins at an offset. It is ASCII: [`super::express`] keeps no other names.
    /// A name stays whole.
    fn fold(&mut self, start: usize, name: usize) {
        let length = self.0.len() - start;
        if length <= COLUMNS.max(name) {
            return;
        }
        let line = self.0.split_off(start);
        let mut rest = line.as_str();
        let mut width = COLUMNS.max(name);
        while rest.len() > width {
            let Some((piece, after)) = rest.split_at_checked(width) else { break };
            self.0.push_str(piece);
            self.0.push_str("\n ");
            rest = after;
            width = COLUMNS - 1;
        }
        self.0.push_str(rest);
    }

    /// Kept values, one in each line.
    fn values(&mut self, name: &str, values: &str) {
        for value in values.split('\n') {
            match value.strip_prefix(BASE64).and_then(|text| STANDARD.decode(text).ok()) {
                Some(bytes) => self.attribute(name, &bytes),
                None => self.attribute(name, value.as_bytes()),
            }
        }
    }

    fn or_kept(&mut self, other: &BTreeMap<String, String>, prefix: &str, name: &str, value: &str) {
        match other.get(&format!("{prefix}{name}")) {
            Some(kept) => self.values(name, kept),
            None => self.attribute(name, value.as_bytes()),
        }
    }

    fn guid(&mut self, other: &BTreeMap<String, String>, name: &str, derived: &[u8; 16]) {
        match other.get(&format!("v2:{name}")) {
            Some(kept) => self.values(name, kept),
            None => self.attribute(name, derived),
        }
    }

    /// The directory's integers are signed.
    fn ttl(&mut self, ttl_s: u32) {
        self.attribute("msDFS-Ttlv2", ttl_s.cast_signed().to_string().as_bytes());
    }

    fn properties(&mut self, flags: &Flags, state: State, other: &BTreeMap<String, String>) {
        for (name, flag) in [
            ("ABDE=on", flags.access_based_enumeration),
            ("InsiteReferral=on", flags.insite_referrals),
            ("ReferralSiteCosting=on", flags.site_costing),
            ("RootScalability=on", flags.root_scalability),
            ("TargetFailback=on", flags.target_failback),
        ] {
            if flag == Some(true) {
                self.attribute("msDFS-Propertiesv2", name.as_bytes());
            }
        }
        let state = match (state, other.get(STATE_DETAIL).map(String::as_str)) {
            (State::Offline, _) => "State=Offline",
            (_, Some("4")) => "State=Online",
            _ => "State=Okay",
        };
        self.attribute("msDFS-Propertiesv2", state.as_bytes());
        if other.contains_key(INTERLINK) {
            self.attribute("msDFS-Propertiesv2", b"Interlink=on");
        }
        if let Some(kept) = other.get("v2:msDFS-Propertiesv2") {
            self.values("msDFS-Propertiesv2", kept);
        }
    }

    /// Attributes that are kept and not among those that are written otherwise.
    fn others(&mut self, other: &BTreeMap<String, String>, prefix: &str, written: &[&str]) {
        for (key, values) in other {
            // Parts of the blob have names with a slash.
            let name = key.strip_prefix(prefix).filter(|name| !name.contains('/'));
            if let Some(name) = name.filter(|name| !written.contains(name)) {
                self.values(name, values);
            }
        }
    }
}
