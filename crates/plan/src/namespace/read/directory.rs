//! Objects of the directory in LDIF: `fTDfs` with its blob (Windows 2000 mode), `msDFS-*` (Windows Server 2008 mode).
//!
//! \[MS-DFSNM\] 2.3.3 and 2.3.4. This form alone loses nothing: attributes that the model has no field for are kept in
//! `other` under `v1:` or `v2:` and their name. A GUID that writing derives from the path is not kept.

use std::collections::{BTreeMap, HashMap};

use super::super::form::{Form, INTERLINK, STATE_DETAIL, folded};
use super::super::model::{Flags, Link, Namespace, State, Target};
use super::blob::{derived_guid, guid_text};
use super::ldif::{self, Entry, as_text, dn_parts, escape_dn, part_value};
use super::{Context, Damage, Damaged, LINKS_MAX, Orphan, ReadNamespace, blob, target_list};

/// The time in objects that never were in a directory.
pub(crate) const PLACEHOLDER_TIME: &str = "20000101000000.0Z";

/// Names of link attributes that are read or derived.
const ANCHOR: &str = "msDFS-NamespaceAnchor";

pub(super) fn read(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let mut namespaces: Vec<(String, ReadNamespace, Vec<u8>)> = Vec::new();
    let mut links: Vec<(String, Link, Vec<u8>, String, usize)> = Vec::new();
    let mut entries = 0_usize;
    ldif::entries(text, |entry| {
        entries += 1;
        let has = |name: &str| entry.all(name).next().is_some();
        if entry.has_class("fTDfs") || has("pKT") {
            let read = version_1(&entry, context)?;
            context.reading.namespaces.push(read);
        } else if entry.has_class("msDFS-DeletedLinkv2") {
            context.reading.deleted.push(entry.dn);
        } else if entry.has_class("msDFS-Linkv2") || has("msDFS-LinkPathv2") {
            if links.len() >= LINKS_MAX {
                return Err(Damage::new(entry.line, format!("more than {LINKS_MAX} links")));
            }
            let (link, namespace_guid) = link(&entry)?;
            let parts = dn_parts(&entry.dn);
            let parent = folded(&parts.get(1..).unwrap_or_default().join(","));
            links.push((parent, link, namespace_guid, entry.dn, entry.line));
        } else if entry.has_class("msDFS-Namespacev2") || has("msDFS-TargetListv2") {
            let (read, guid) = version_2(&entry, context)?;
            let dn = folded(&dn_parts(&entry.dn).join(","));
            namespaces.push((dn, read, guid));
        } else if !entry.has_class(ANCHOR) && !entry.dn.is_empty() {
            let is_container = part_value(dn_parts(&entry.dn).first().unwrap_or(&""))
                .eq_ignore_ascii_case("Dfs-Configuration");
            if !is_container {
                context.note(entry.line, &format!("dn: {}", entry.dn));
            }
        }
        Ok(())
    })?;
    if entries == 0 {
        return Err(Damage::new(1, "LDIF without an entry"));
    }
    let by_dn: HashMap<String, usize> =
        namespaces.iter().enumerate().map(|(number, (dn, ..))| (dn.clone(), number)).collect();
    for (parent, mut link, guid, dn, line) in links {
        let place = context.place(line);
        let Some((_, read, namespace_guid)) =
            by_dn.get(&parent).and_then(|number| namespaces.get_mut(*number))
        else {
            context.reading.orphans.push(Orphan { dn, link, place });
            continue;
        };
        let path = format!("\\{}\\{}\\{}", read.namespace.host, read.namespace.name, link.path);
        forget_derived(&mut link.other, &derived_guid(&path));
        if guid == *namespace_guid {
            link.other.remove("v2:msDFS-NamespaceIdentityGUIDv2");
        }
        if dn != link_dn(&read.namespace, &link) {
            link.other.insert("v2:dn".to_owned(), dn);
        }
        read.namespace.links.push(link);
        read.link_places.push(place);
    }
    context.reading.namespaces.extend(namespaces.into_iter().map(|(_, read, _)| read));
    Ok(())
}

/// The distinguished name of a namespace's object; of mode 2008, the one below its anchor.
pub(crate) fn namespace_dn(namespace: &Namespace, form: Form) -> String {
    if let Some(dn) = namespace.other.get(&format!("{}dn", form.prefix())) {
        return dn.clone();
    }
    let name = escape_dn(&namespace.name);
    let base: Vec<String> =
        namespace.host.split('.').map(|part| format!("DC={}", escape_dn(part))).collect();
    let twice = if form == Form::DirectoryV2 { format!("CN={name},") } else { String::new() };
    format!("{twice}CN={name},CN=Dfs-Configuration,CN=System,{}", base.join(","))
}

/// The distinguished name of a link's object.
pub(crate) fn link_dn(namespace: &Namespace, link: &Link) -> String {
    if let Some(dn) = link.other.get("v2:dn") {
        return dn.clone();
    }
    let guid = link
        .other
        .get("v2:msDFS-LinkIdentityGUIDv2")
        .and_then(|text| guid_of(text))
        .unwrap_or_else(|| {
            derived_guid(&format!("\\{}\\{}\\{}", namespace.host, namespace.name, link.path))
        });
    format!("CN=link-{},{}", guid_text(&guid), namespace_dn(namespace, Form::DirectoryV2))
}

/// A kept value of 16 bytes.
pub(crate) fn guid_of(text: &str) -> Option<[u8; 16]> {
    use base64::Engine as _;
    let bytes = match text.strip_prefix(ldif::BASE64) {
        Some(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded).ok()?,
        None => text.as_bytes().to_vec(),
    };
    bytes.try_into().ok()
}

/// Domain of a distinguished name.
fn domain(parts: &[&str]) -> String {
    let labels = parts
        .iter()
        .filter(|part| part.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("dc=")));
    labels.map(|part| part_value(part)).collect::<Vec<_>>().join(".")
}

fn version_1(entry: &Entry<'_>, context: &Context<'_>) -> Damaged<ReadNamespace> {
    let Some(attribute) = entry.all("pKT").next() else {
        return Err(Damage::new(entry.line, format!("{} has no attribute pKT", entry.dn)));
    };
    let blob = blob::read(&attribute.value).map_err(|message| {
        Damage::new(attribute.line, format!("damaged blob of {}: {message}", entry.dn))
    })?;
    let mut namespace = blob.namespace;
    keep_others(entry, "v1:", &["objectClass", "pKT", "remoteServerName"], &mut namespace.other);
    let own = as_text(namespace.name.as_bytes());
    for key in ["v1:cn", "v1:name"] {
        if namespace.other.get(key).is_some_and(|value| *value == own) {
            namespace.other.remove(key);
        }
    }
    let path = format!("\\{}\\{}", namespace.host, namespace.name);
    let guid = as_text(&derived_guid(&path));
    if namespace.other.get("v1:pKTGuid").is_some_and(|value| *value == guid) {
        namespace.other.remove("v1:pKTGuid");
    }
    let servers: Vec<String> =
        entry.all("remoteServerName").map(|value| as_text(&value.value)).collect();
    let derived: Vec<String> = remote_servers(&namespace.targets)
        .iter()
        .map(|server| as_text(server.as_bytes()))
        .collect();
    let mut root_servers_differ = Vec::new();
    if !servers.is_empty() && servers != derived {
        let known =
            |list: &[String], one: &str| list.iter().any(|other| folded(other) == folded(one));
        root_servers_differ.extend(servers.iter().filter(|one| !known(&derived, one)).cloned());
        root_servers_differ.extend(derived.iter().filter(|one| !known(&servers, one)).cloned());
        namespace.other.insert("v1:remoteServerName".to_owned(), servers.join("\n"));
    }
    if entry.dn != namespace_dn(&namespace, Form::DirectoryV1) {
        namespace.other.insert("v1:dn".to_owned(), entry.dn.clone());
    }
    let links = namespace.links.len();
    Ok(ReadNamespace {
        namespace,
        form: Form::DirectoryV1,
        place: context.place(entry.line),
        link_places: vec![context.place(attribute.line); links],
        blob_bytes: Some(blob.bytes),
        root_servers_differ,
    })
}

/// The values of `remoteServerName` for root targets.
pub(crate) fn remote_servers(targets: &[Target]) -> Vec<String> {
    let paths = targets.iter().map(|target| format!("\\\\{}\\{}", target.server, target.share));
    paths.chain(["*".to_owned()]).collect()
}

const READ: [&str; 6] = [
    "objectClass",
    "msDFS-TargetListv2",
    "msDFS-Ttlv2",
    "msDFS-Commentv2",
    "msDFS-Propertiesv2",
    "msDFS-LinkPathv2",
];

fn version_2(entry: &Entry<'_>, context: &Context<'_>) -> Damaged<(ReadNamespace, Vec<u8>)> {
    let parts = dn_parts(&entry.dn);
    let mut namespace = Namespace {
        host: domain(&parts),
        name: part_value(parts.first().unwrap_or(&"")),
        kind: Form::DirectoryV2.kind(),
        ..Namespace::default()
    };
    if namespace.host.is_empty() {
        return Err(Damage::new(entry.line, format!("{} has no domain (DC=...)", entry.dn)));
    }
    namespace.targets = list_of_targets(entry)?;
    namespace.ttl_s = ttl(entry)?;
    namespace.comment = comment(entry);
    properties(entry, &mut namespace.flags, &mut namespace.state, &mut namespace.other, true);
    let guid = entry
        .all("msDFS-NamespaceIdentityGUIDv2")
        .next()
        .map(|attribute| attribute.value.clone())
        .unwrap_or_default();
    keep_others(entry, "v2:", &READ, &mut namespace.other);
    let path = format!("\\{}\\{}", namespace.host, namespace.name);
    forget_derived(&mut namespace.other, &derived_guid(&path));
    let own = as_text(namespace.name.as_bytes());
    for (key, value) in [
        ("v2:cn", own.as_str()),
        ("v2:name", own.as_str()),
        ("v2:msDFS-SchemaMajorVersion", "2"),
        ("v2:msDFS-SchemaMinorVersion", "0"),
    ] {
        if namespace.other.get(key).is_some_and(|kept| kept == value) {
            namespace.other.remove(key);
        }
    }
    if entry.dn != namespace_dn(&namespace, Form::DirectoryV2) {
        namespace.other.insert("v2:dn".to_owned(), entry.dn.clone());
    }
    let read = ReadNamespace {
        namespace,
        form: Form::DirectoryV2,
        place: context.place(entry.line),
        link_places: Vec::new(),
        blob_bytes: None,
        root_servers_differ: Vec::new(),
    };
    Ok((read, guid))
}

fn link(entry: &Entry<'_>) -> Damaged<(Link, Vec<u8>)> {
    let mut link = Link::default();
    let Some(path) = entry.all("msDFS-LinkPathv2").next() else {
        return Err(Damage::new(
            entry.line,
            format!("{} has no attribute msDFS-LinkPathv2", entry.dn),
        ));
    };
    let text = std::str::from_utf8(&path.value)
        .map_err(|_| Damage::new(path.line, "msDFS-LinkPathv2 is not UTF-8"))?;
    link.path = text.trim_matches(['/', '\\']).replace('/', "\\");
    if link.path.is_empty() {
        return Err(Damage::new(path.line, "msDFS-LinkPathv2 is empty"));
    }
    link.targets = list_of_targets(entry)?;
    link.ttl_s = ttl(entry)?;
    link.comment = comment(entry);
    properties(entry, &mut link.flags, &mut link.state, &mut link.other, false);
    link.security =
        entry.all("msDFS-LinkSecurityDescriptorv2").next().map(|attribute| attribute.value.clone());
    let guid = entry
        .all("msDFS-NamespaceIdentityGUIDv2")
        .next()
        .map(|attribute| attribute.value.clone())
        .unwrap_or_default();
    keep_others(entry, "v2:", &READ, &mut link.other);
    link.other.remove("v2:msDFS-LinkSecurityDescriptorv2");
    let name = dn_parts(&entry.dn).first().map(|part| part_value(part)).unwrap_or_default();
    let name = as_text(name.as_bytes());
    for key in ["v2:cn", "v2:name"] {
        if link.other.get(key).is_some_and(|kept| *kept == name) {
            link.other.remove(key);
        }
    }
    Ok((link, guid))
}

fn list_of_targets(entry: &Entry<'_>) -> Damaged<Vec<Target>> {
    let Some(attribute) = entry.all("msDFS-TargetListv2").next() else {
        return Err(Damage::new(
            entry.line,
            format!("{} has no attribute msDFS-TargetListv2", entry.dn),
        ));
    };
    target_list::read(&attribute.value)
        .map_err(|message| Damage::new(attribute.line, format!("{}: {message}", entry.dn)))
}

/// The TTL, a signed number of 32 bits that counts as unsigned.
fn ttl(entry: &Entry<'_>) -> Damaged<Option<u32>> {
    let Some(attribute) = entry.all("msDFS-Ttlv2").next() else { return Ok(None) };
    let text = as_text(&attribute.value);
    let signed = text.trim().parse::<i32>().map(i32::cast_unsigned);
    signed.or_else(|_| text.trim().parse()).map(Some).map_err(|_| {
        Damage::new(attribute.line, format!("msDFS-Ttlv2 {text:?} is not a number of seconds"))
    })
}

fn comment(entry: &Entry<'_>) -> Option<String> {
    let attribute = entry.all("msDFS-Commentv2").next()?;
    Some(String::from_utf8_lossy(&attribute.value).into_owned())
}

fn properties(
    entry: &Entry<'_>,
    flags: &mut Flags,
    state: &mut State,
    other: &mut BTreeMap<String, String>,
    is_root: bool,
) {
    flags.site_costing = Some(false);
    flags.insite_referrals = Some(false);
    flags.target_failback = Some(false);
    if is_root {
        flags.root_scalability = Some(false);
        flags.access_based_enumeration = Some(false);
    }
    let mut kept = Vec::new();
    for attribute in entry.all("msDFS-Propertiesv2") {
        let text = as_text(&attribute.value);
        match (text.to_ascii_lowercase().as_str(), is_root) {
            ("abde=on", true) => flags.access_based_enumeration = Some(true),
            ("insitereferral=on", _) => flags.insite_referrals = Some(true),
            ("referralsitecosting=on", _) => flags.site_costing = Some(true),
            ("rootscalability=on", true) => flags.root_scalability = Some(true),
            ("targetfailback=on", _) => flags.target_failback = Some(true),
            ("state=okay", _) => *state = State::Online,
            ("state=offline", _) => *state = State::Offline,
            ("state=online", _) => {
                *state = State::Online;
                other.insert(STATE_DETAIL.to_owned(), "4".to_owned());
            }
            ("interlink=on", false) => {
                other.insert(INTERLINK.to_owned(), "yes".to_owned());
            }
            _ => kept.push(text),
        }
    }
    if !kept.is_empty() {
        other.insert("v2:msDFS-Propertiesv2".to_owned(), kept.join("\n"));
    }
}

/// Keeps attributes that are not read, their values in lines.
fn keep_others(
    entry: &Entry<'_>,
    prefix: &str,
    read: &[&str],
    other: &mut BTreeMap<String, String>,
) {
    for attribute in &entry.attributes {
        if read.iter().any(|name| name.eq_ignore_ascii_case(attribute.name)) {
            continue;
        }
        let text = as_text(&attribute.value);
        other
            .entry(format!("{prefix}{}", attribute.name))
            .and_modify(|values| {
                values.push('\n');
                values.push_str(&text);
            })
            .or_insert(text);
    }
}

/// Forgets identities that writing derives, and the time of objects that never were in a directory.
fn forget_derived(other: &mut BTreeMap<String, String>, guid: &[u8; 16]) {
    let guid = as_text(guid);
    for key in [
        "v2:msDFS-NamespaceIdentityGUIDv2",
        "v2:msDFS-LinkIdentityGUIDv2",
        "v2:msDFS-GenerationGUIDv2",
    ] {
        if other.get(key).is_some_and(|kept| *kept == guid) {
            other.remove(key);
        }
    }
    if other.get("v2:msDFS-LastModifiedv2").is_some_and(|kept| kept == PLACEHOLDER_TIME) {
        other.remove("v2:msDFS-LastModifiedv2");
    }
}
