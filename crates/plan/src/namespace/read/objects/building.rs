//! A namespace that is put together from objects or commands, in any order.

use std::collections::{BTreeMap, HashMap};

use super::super::super::form::{
    Form, STATE_DETAIL, folded, priority_class, split_target, split_unc,
};
use super::super::super::model::{Flags, Kind, Link, Namespace, State, Target};
use super::super::{LINKS_MAX, Place, ReadNamespace, push_target};
use crate::input::powershell::{Object, plain};

/// What an object describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Root,
    Folder,
    Target,
}

/// Properties that say nothing about the namespace.
const IGNORED: [&str; 10] = [
    "pscomputername",
    "runspaceid",
    "psshowcomputername",
    "cimclass",
    "ciminstanceproperties",
    "cimsystemproperties",
    "path",
    "namespacepath",
    "targetpath",
    "passthru",
];

struct Building {
    form: Form,
    read: ReadNamespace,
    /// Number of each link by its path.
    links: HashMap<String, usize>,
}

/// Namespaces in the making.
#[derive(Default)]
pub(crate) struct Objects {
    namespaces: Vec<Building>,
    by_path: HashMap<(Form, String), usize>,
    count: usize,
}

impl Objects {
    /// Adds an object: `None` if it has no path of a namespace, else what was not understood in it.
    pub(crate) fn add(
        &mut self,
        form: Form,
        properties: &Object,
        place: Place,
    ) -> Result<Option<Vec<String>>, String> {
        let Some(path) = path_of(properties).filter(|path| path.starts_with("\\\\")) else {
            return Ok(None);
        };
        let Some((_, _, below)) = split_unc(path) else {
            return Err(format!("the path {path:?} is not \\\\domain\\namespace"));
        };
        let subject = match properties.string("targetpath").filter(|target| !target.is_empty()) {
            Some(_) => Subject::Target,
            None if below.is_empty() => Subject::Root,
            None => Subject::Folder,
        };
        self.apply(form, subject, properties, place).map(Some)
    }

    /// Applies properties to what they are about, which is made if it is not there.
    pub(crate) fn apply(
        &mut self,
        form: Form,
        subject: Subject,
        properties: &Object,
        place: Place,
    ) -> Result<Vec<String>, String> {
        let path = path_of(properties).unwrap_or_default().to_owned();
        let Some((host, name, below)) = split_unc(&path) else {
            return Err(format!("the path {path:?} is not \\\\domain\\namespace"));
        };
        self.count += 1;
        if self.count > LINKS_MAX {
            return Err(format!("more than {LINKS_MAX} objects"));
        }
        let building = self.namespace(form, host, name, place);
        let mut unknown = Vec::new();
        match subject {
            Subject::Root => {
                building.read.place = place;
                let namespace = &mut building.read.namespace;
                root(properties, form, namespace, &mut unknown)?;
            }
            Subject::Folder => {
                let link = building.link(below, place);
                folder(properties, form, link, &mut unknown)?;
            }
            Subject::Target => {
                let targets = if below.is_empty() {
                    &mut building.read.namespace.targets
                } else {
                    &mut building.link(below, place).targets
                };
                target(properties, form, targets, &mut unknown)?;
            }
        }
        Ok(unknown)
    }

    fn namespace(&mut self, form: Form, host: &str, name: &str, place: Place) -> &mut Building {
        let key = (form, folded(&format!("{host}\\{name}")));
        let number = *self.by_path.entry(key).or_insert_with(|| {
            self.namespaces.push(Building {
                form,
                read: ReadNamespace {
                    namespace: Namespace {
                        host: host.to_owned(),
                        name: name.to_owned(),
                        ..Namespace::default()
                    },
                    form,
                    place,
                    link_places: Vec::new(),
                    blob_bytes: None,
                    root_servers_differ: Vec::new(),
                },
                links: HashMap::new(),
            });
            self.namespaces.len() - 1
        });
        &mut self.namespaces[number]
    }

    pub(super) fn into_namespaces(self) -> impl Iterator<Item = ReadNamespace> {
        self.namespaces.into_iter().map(|building| {
            debug_assert_eq!(building.form, building.read.form);
            building.read
        })
    }
}

impl Building {
    fn link(&mut self, path: &str, place: Place) -> &mut Link {
        let links = &mut self.read.namespace.links;
        let number = *self.links.entry(folded(path)).or_insert_with(|| {
            links.push(Link { path: path.to_owned(), ..Link::default() });
            self.read.link_places.push(place);
            links.len() - 1
        });
        &mut links[number]
    }
}

fn path_of(properties: &Object) -> Option<&str> {
    let path = properties.string("namespacepath").filter(|path| !path.is_empty());
    path.or_else(|| properties.string("path"))
}

/// Properties that are not read are kept under their name.
fn keep(properties: &Object, form: Form, read: &[&str], other: &mut BTreeMap<String, String>) {
    for property in &properties.properties {
        let (plain, value) = (property.plain.as_str(), property.value.as_str().unwrap_or_default());
        if !value.is_empty() && !IGNORED.contains(&plain) && !read.contains(&plain) {
            other.insert(format!("{}{}", form.prefix(), property.name), value.to_owned());
        }
    }
}

fn root(
    properties: &Object,
    form: Form,
    namespace: &mut Namespace,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    set_state(properties.string("state"), &mut namespace.state, &mut namespace.other, unknown);
    set_ttl(properties, &mut namespace.ttl_s)?;
    set_comment(properties, &mut namespace.comment);
    if let Some(kind) = properties.string("type").filter(|kind| !kind.is_empty()) {
        namespace.kind = match plain(kind).as_str() {
            "domainv1" => Some(Kind::DomainV1),
            "domainv2" => Some(Kind::DomainV2),
            "standalone" => Some(Kind::Standalone),
            _ => {
                unknown.push(format!("type of a namespace {kind:?}"));
                None
            }
        };
    }
    set_flags(properties, &mut namespace.flags, true, unknown)?;
    let read = [&READ[..], &["type"]].concat();
    keep(properties, form, &read, &mut namespace.other);
    Ok(())
}

const READ: [&str; 10] = [
    "state",
    "timetolivesec",
    "timetolive",
    "description",
    "flags",
    "enablesitecosting",
    "enableinsitereferrals",
    "enablerootscalability",
    "enableaccessbasedenumeration",
    "enabletargetfailback",
];

fn folder(
    properties: &Object,
    form: Form,
    link: &mut Link,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    set_state(properties.string("state"), &mut link.state, &mut link.other, unknown);
    set_ttl(properties, &mut link.ttl_s)?;
    set_comment(properties, &mut link.comment);
    set_flags(properties, &mut link.flags, false, unknown)?;
    keep(properties, form, &READ, &mut link.other);
    Ok(())
}

fn target(
    properties: &Object,
    form: Form,
    targets: &mut Vec<Target>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let path = properties.string("targetpath").unwrap_or_default();
    let Some((server, share)) = split_target(path) else {
        return Err(format!("the target {path:?} is not \\\\server\\share"));
    };
    let known = targets.iter().position(|target| target.server == server && target.share == share);
    let number = match known {
        Some(number) => number,
        None => {
            let target =
                Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() };
            push_target(targets, target)?;
            targets.len() - 1
        }
    };
    let target = &mut targets[number];
    set_state(properties.string("state"), &mut target.state, &mut target.other, unknown);
    if let Some(class) =
        properties.string("referralpriorityclass").filter(|class| !class.is_empty())
    {
        target.priority_class = priority_class(class);
        if target.priority_class.is_none() {
            unknown.push(format!("priority class {class:?}"));
        }
    }
    if let Some(rank) = properties.string("referralpriorityrank").filter(|rank| !rank.is_empty()) {
        let number = rank.trim().parse().ok().filter(|rank| *rank <= 31);
        target.priority_rank =
            Some(number.ok_or_else(|| format!("the priority rank {rank:?} is not 0 to 31"))?);
    }
    let read = ["state", "referralpriorityclass", "referralpriorityrank"];
    keep(properties, form, &read, &mut target.other);
    Ok(())
}

fn set_state(
    value: Option<&str>,
    state: &mut State,
    other: &mut BTreeMap<String, String>,
    unknown: &mut Vec<String>,
) {
    let Some(value) = value.map(str::trim).filter(|value| !value.is_empty()) else { return };
    *state = match (value.to_ascii_lowercase().as_str(), value.parse()) {
        ("online", _) => State::Online,
        ("offline", _) => State::Offline,
        (_, Ok(number)) => {
            unknown.push(format!(
                "the state is the number {number}: select its text (@{{n='State';e={{[string]$_.State}}}})"
            ));
            State::Other(number)
        }
        _ => {
            other.insert(STATE_DETAIL.to_owned(), value.to_owned());
            State::Other(0)
        }
    };
}

fn set_ttl(properties: &Object, ttl_s: &mut Option<u32>) -> Result<(), String> {
    let value = properties.string("timetolivesec").or_else(|| properties.string("timetolive"));
    if let Some(value) = value.map(str::trim).filter(|value| !value.is_empty()) {
        let number = value.parse();
        *ttl_s = Some(
            number.map_err(|_| format!("the time to live {value:?} is not a number of seconds"))?,
        );
    }
    Ok(())
}

fn set_comment(properties: &Object, comment: &mut Option<String>) {
    if let Some(text) = properties.string("description").filter(|text| !text.is_empty()) {
        *comment = Some(text.to_owned());
    }
}

/// Flags: the list of those that are set, or one switch each.
fn set_flags(
    properties: &Object,
    flags: &mut Flags,
    is_root: bool,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    if let Some(list) = properties.string("flags") {
        flags.insite_referrals = Some(false);
        flags.target_failback = Some(false);
        if is_root {
            flags.site_costing = Some(false);
            flags.root_scalability = Some(false);
            flags.access_based_enumeration = Some(false);
        }
        // Separated by commas in a list, by spaces as `[string]` joins them.
        let mut rest = plain(list);
        for (name, flag) in [
            ("sitecosting", &mut flags.site_costing),
            ("insitereferrals", &mut flags.insite_referrals),
            ("rootscalability", &mut flags.root_scalability),
            ("accessbasedenumeration", &mut flags.access_based_enumeration),
            ("targetfailback", &mut flags.target_failback),
        ] {
            if rest.contains(name) {
                *flag = Some(true);
                rest = rest.replace(name, "");
            }
        }
        if !matches!(rest.as_str(), "" | "none") {
            unknown.push(format!("flags {:?}", list.trim()));
        }
    }
    for (name, flag) in [
        ("enablesitecosting", &mut flags.site_costing),
        ("enableinsitereferrals", &mut flags.insite_referrals),
        ("enablerootscalability", &mut flags.root_scalability),
        ("enableaccessbasedenumeration", &mut flags.access_based_enumeration),
        ("enabletargetfailback", &mut flags.target_failback),
    ] {
        match properties.string(name).map(plain).as_deref() {
            Some("true" | "1") => *flag = Some(true),
            Some("false" | "0") => *flag = Some(false),
            Some(other) if !other.is_empty() => {
                return Err(format!("{name} is {other:?}, not true or false"));
            }
            _ => {}
        }
    }
    Ok(())
}
