//! What of a namespace a form can hold.
//!
//! A form that always says something (a blob has a TTL for each link) gets the default of Windows where the namespace says
//! nothing: 300 s for roots, 1800 s for links, no flag, the usual priority. That loses nothing and is not listed.

use std::collections::{BTreeMap, HashSet};

use super::super::form::{Form, LEVELS_MAX, STATE_DETAIL, Stateful, folded};
use super::super::model::{Flags, Kind, Link, Namespace, PriorityClass, State, Target};
use super::loss::{Loss, Losses, Lost};
use super::others::{Level, keep_other};
use crate::input::text::is_xml_text;

/// What Windows gives roots and links that say nothing.
pub(super) const ROOT_TTL_S: u32 = 300;
pub(super) const LINK_TTL_S: u32 = 1800;
/// Bytes of a string in a blob, and of a symbolic link's text on Linux.
const BLOB_STRING_BYTES: usize = 0xffff;
const SYMLINK_BYTES: usize = 4095;
/// Bytes of a list of targets in the directory.
const TARGET_LIST_BYTES: usize = 2 << 20;

/// The namespace as the form holds it, and what is lost.
pub fn express(namespace: &Namespace, form: Form) -> (Namespace, Vec<Loss>) {
    let mut losses = Losses::default();
    let mut out = Namespace {
        host: namespace.host.clone(),
        name: namespace.name.clone(),
        kind: kind(namespace.kind, form),
        ..Namespace::default()
    };
    let root = "the root";
    let is_host = form != Form::Msdfs || !out.host.is_empty();
    for (part, is_needed) in [(&mut out.host, is_host), (&mut out.name, true)] {
        if !is_needed {
            continue;
        }
        let plain = plain_part(part);
        if plain != *part {
            losses.add(Lost::Names, || format!("the root ({part:?}, written as {plain:?})"));
            *part = plain;
        }
    }
    if form == Form::Msdfs {
        let name = share_name(&out.name);
        if out.name != name {
            losses.add(Lost::Names, || format!("{} (as a share of Samba: {name})", out.name));
            out.name = name;
        }
    }
    (out.state, out.other) =
        state(namespace.state, &namespace.other, form, Stateful::Volume, root, &mut losses);
    out.ttl_s = ttl(namespace.ttl_s, form, ROOT_TTL_S, root, &mut losses);
    out.comment = comment(namespace.comment.as_ref(), form, true, root, &mut losses);
    out.flags = flags(&namespace.flags, form, true, root, &mut losses);
    keep_other(&namespace.other, &mut out.other, form, Level::Root, root, &mut losses);
    if out.flags.site_costing.is_some() && form == Form::Export2008 {
        out.other.remove("export:SITECOSTING");
    }
    let is_proxy = namespace.other.contains_key("msdfs:proxy");
    if form == Form::Msdfs && !is_proxy {
        for target in &namespace.targets {
            losses.add(Lost::NamespaceServers, || unc(target));
        }
    } else {
        out.targets = targets(&namespace.targets, form, root, &mut losses);
    }
    if form == Form::Script && out.targets.is_empty() {
        // The type is a parameter of the command that makes the root on its first server.
        out.kind = None;
    }
    let mut context = LinkContext {
        form,
        paths: HashSet::new(),
        all: match form {
            Form::Msdfs => namespace.links.iter().map(|link| folded(&link.path)).collect(),
            _ => HashSet::new(),
        },
    };
    for link in &namespace.links {
        if is_proxy && form == Form::Msdfs {
            losses.add(Lost::Names, || format!("{} (below a proxy)", link.path));
        } else if let Some(link) = context.link(link, &mut losses) {
            out.links.push(link);
        }
    }
    if (&out.host, &out.name) != (&namespace.host, &namespace.name) {
        // Distinguished names that were read have the old name.
        for key in ["v1:dn", "v2:dn"] {
            out.other.remove(key);
            out.links.iter_mut().for_each(|link| drop(link.other.remove(key)));
        }
    }
    if form == Form::Msdfs && out.targets.is_empty() {
        out.other.remove("msdfs:proxy");
    }
    (out, losses.into_vec())
}

fn kind(kind: Option<Kind>, form: Form) -> Option<Kind> {
    match (form, kind) {
        (Form::Objects, Some(Kind::Samba)) => None,
        (Form::Script, None | Some(Kind::Samba)) => Some(Kind::DomainV2),
        (Form::Objects | Form::Script, kind) => kind,
        _ => form.kind(),
    }
}

/// A host or name of a root without what no path can hold.
fn plain_part(part: &str) -> String {
    let is_refused = |c: char| c == '\\' || c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    let part: String = part.chars().map(|c| if is_refused(c) { '_' } else { c }).collect();
    let part = part.trim();
    if part.is_empty() { "_".to_owned() } else { part.to_owned() }
}

/// A name without the characters that Samba refuses in names of shares, or that end its heading in `smb.conf`.
fn share_name(name: &str) -> String {
    let is_refused = |c: char| "%<>*?|/\\+=;:\",[]".contains(c) || c.is_control();
    let name: String = name.chars().map(|c| if is_refused(c) { '_' } else { c }).collect();
    let name = name.trim();
    if name.is_empty() || name.eq_ignore_ascii_case("global") {
        format!("_{name}")
    } else {
        name.to_owned()
    }
}

fn unc(target: &Target) -> String {
    format!("\\\\{}\\{}", target.server, target.share)
}

/// The state, and `other` with its detail.
fn state(
    state: State,
    other: &BTreeMap<String, String>,
    form: Form,
    kind: Stateful,
    subject: &str,
    losses: &mut Losses,
) -> (State, BTreeMap<String, String>) {
    let code = kind.code(state, other);
    let kept = match form {
        // Words only: a number would be taken for an export of 2003.
        Form::Export2008 => match kind {
            Stateful::Volume => code.is_none_or(|code| (1..=4).contains(&code)),
            Stateful::Target => code.is_none_or(|code| matches!(code, 1 | 2 | 4)),
        },
        Form::Export2003 | Form::DirectoryV1 => {
            code.is_some_and(|code| code <= 0xf || form == Form::Export2003)
        }
        Form::DirectoryV2 => {
            matches!(
                (kind, code),
                (Stateful::Volume, Some(1 | 3 | 4)) | (Stateful::Target, Some(1 | 2))
            )
        }
        // A link of Samba is there or not.
        Form::Msdfs => {
            matches!((kind, code), (Stateful::Volume, Some(1)) | (Stateful::Target, Some(2)))
        }
        _ => matches!(
            (kind, code),
            (Stateful::Volume, Some(1 | 3)) | (Stateful::Target, Some(1 | 2))
        ),
    };
    // A word that would be read as a state is one.
    let word = kind.word(state, other);
    let is_word = code.is_some() || kind.state_of_text(&word) == (state, Some(word.clone()));
    if kept && is_word && is_xml_text(&word) {
        let (read, detail) = match code {
            Some(code) => kind.state(code),
            None => (state, Some(word)),
        };
        let detail = detail.map(|detail| (STATE_DETAIL.to_owned(), detail));
        return (read, detail.into_iter().collect());
    }
    if state == State::Offline || !matches!(state, State::Online) {
        losses.add(Lost::States, || format!("{subject} ({})", kind.word(state, other)));
    }
    let is_offline = state == State::Offline && form != Form::Msdfs;
    let read = if is_offline { State::Offline } else { State::Online };
    (read, BTreeMap::new())
}

fn ttl(
    ttl_s: Option<u32>,
    form: Form,
    default: u32,
    subject: &str,
    losses: &mut Losses,
) -> Option<u32> {
    match form {
        Form::DirectoryV1 | Form::DirectoryV2 => Some(ttl_s.unwrap_or(default)),
        Form::Msdfs => {
            // Samba answers 600 s, always.
            if let Some(ttl_s) = ttl_s.filter(|ttl_s| *ttl_s != 600) {
                losses.add(Lost::Ttls, || format!("{subject} ({ttl_s} s; Samba answers 600 s)"));
            }
            None
        }
        _ => ttl_s,
    }
}

fn comment(
    comment: Option<&String>,
    form: Form,
    is_root: bool,
    subject: &str,
    losses: &mut Losses,
) -> Option<String> {
    let comment = comment.filter(|comment| !comment.is_empty())?;
    let is_kept = match form {
        Form::Export2003 | Form::Export2008 => is_xml_text(comment),
        Form::DirectoryV1 => utf16_bytes(comment) <= BLOB_STRING_BYTES,
        // One line of smb.conf, in which % begins a substitution.
        Form::Msdfs => {
            is_root
                && comment.trim() == comment
                && !comment.ends_with('\\')
                && !comment.contains('%')
                && !comment.chars().any(char::is_control)
        }
        Form::Script => !comment.contains('\0'),
        _ => true,
    };
    if is_kept {
        return Some(comment.clone());
    }
    losses.add(Lost::Comments, || format!("{subject} ({comment:?})"));
    None
}

fn flags(flags: &Flags, form: Form, is_root: bool, subject: &str, losses: &mut Losses) -> Flags {
    let Flags {
        site_costing: site,
        insite_referrals: insite,
        root_scalability: scalability,
        access_based_enumeration: enumeration,
        target_failback: failback,
    } = *flags;
    let is_set = |flag: Option<bool>| Some(flag == Some(true));
    let out = match (form, is_root) {
        (Form::Export2003, _) => {
            let is_said = [site, insite, scalability, failback].iter().any(Option::is_some);
            let one = |flag| if is_said { is_set(flag) } else { None };
            Flags {
                site_costing: one(site),
                insite_referrals: one(insite),
                // A link's number has the bit as well.
                root_scalability: one(scalability),
                access_based_enumeration: None,
                target_failback: one(failback),
            }
        }
        (Form::Export2008, true) => Flags {
            site_costing: site,
            root_scalability: scalability,
            access_based_enumeration: enumeration,
            ..Flags::default()
        },
        (Form::DirectoryV1 | Form::DirectoryV2, _) => Flags {
            site_costing: is_set(site),
            insite_referrals: is_set(insite),
            root_scalability: if is_root { is_set(scalability) } else { None },
            access_based_enumeration: if is_root && form == Form::DirectoryV2 {
                is_set(enumeration)
            } else {
                None
            },
            target_failback: is_set(failback),
        },
        (Form::Objects | Form::Script, true) => Flags {
            site_costing: is_set(site),
            insite_referrals: is_set(insite),
            root_scalability: is_set(scalability),
            access_based_enumeration: is_set(enumeration),
            target_failback: is_set(failback),
        },
        (Form::Objects | Form::Script, false) => Flags {
            insite_referrals: is_set(insite),
            target_failback: is_set(failback),
            ..Flags::default()
        },
        _ => Flags::default(),
    };
    for (name, before, after) in [
        ("site costing", site, out.site_costing),
        ("in-site referrals", insite, out.insite_referrals),
        ("root scalability", scalability, out.root_scalability),
        ("access-based enumeration", enumeration, out.access_based_enumeration),
        ("target failback", failback, out.target_failback),
    ] {
        if before == Some(true) && after != Some(true) {
            losses.add(Lost::Flags, || format!("{subject} ({name})"));
        }
    }
    out
}

fn targets(targets: &[Target], form: Form, subject: &str, losses: &mut Losses) -> Vec<Target> {
    let mut out: Vec<Target> = Vec::with_capacity(targets.len());
    for target in targets {
        if !is_target(target, form) {
            losses.add(Lost::Names, || format!("{subject} ({})", unc(target)));
            continue;
        }
        let is_double = matches!(form, Form::Objects | Form::Script | Form::Msdfs)
            && out.iter().any(|other| other.server == target.server && other.share == target.share);
        if is_double {
            losses.add(Lost::DuplicateTargets, || format!("{subject} ({})", unc(target)));
            continue;
        }
        if form == Form::Msdfs && target.state != State::Online {
            losses.add(Lost::States, || {
                format!("{subject} ({} is not online and is left out)", unc(target))
            });
            continue;
        }
        let (state, other) =
            state(target.state, &target.other, form, Stateful::Target, subject, losses);
        let mut kept = Target {
            server: target.server.clone(),
            share: target.share.clone(),
            state,
            other,
            ..Target::default()
        };
        priority(target, &mut kept, form, subject, losses);
        keep_other(&target.other, &mut kept.other, form, Level::Target, subject, losses);
        out.push(kept);
    }
    out
}

fn priority(target: &Target, kept: &mut Target, form: Form, subject: &str, losses: &mut Losses) {
    let class = target.priority_class;
    let rank = target.priority_rank.filter(|rank| *rank <= 31);
    let is_said = match form {
        Form::DirectoryV1 | Form::DirectoryV2 => {
            // Numbers that are not priorities are kept as they were read.
            let raw = ["v1:pKT/priority-class", "v2:priorityClass", "v2:priorityRank"];
            let has = |key: &str| target.other.contains_key(key) && key.starts_with(form.prefix());
            let has_class = has(raw[0]) || has(raw[1]);
            kept.priority_class = if has_class {
                class
            } else {
                Some(class.unwrap_or(PriorityClass::SiteCostNormal))
            };
            kept.priority_rank = if has(raw[2]) { rank } else { Some(rank.unwrap_or(0)) };
            rank == target.priority_rank
        }
        Form::Objects | Form::Script => {
            kept.priority_class = class;
            kept.priority_rank = rank;
            rank == target.priority_rank
        }
        _ => {
            class.unwrap_or_default() == PriorityClass::SiteCostNormal
                && target.priority_rank.unwrap_or(0) == 0
        }
    };
    if !is_said {
        losses.add(Lost::Priorities, || format!("{subject} ({})", unc(target)));
    }
}

fn utf16_bytes(text: &str) -> usize {
    text.encode_utf16().count() * 2
}

/// Whether no form has trouble with the text of a name.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control) && is_xml_text(text)
}

fn is_target(target: &Target, form: Form) -> bool {
    let (server, share) = (&target.server, &target.share);
    is_plain(server)
        && is_plain(share)
        && !server.contains('\\')
        && match form {
            Form::DirectoryV1 => utf16_bytes(server).max(utf16_bytes(share)) <= BLOB_STRING_BYTES,
            Form::Msdfs => {
                // Samba separates targets by commas and takes both slashes for the same.
                !server.contains([',', '/'])
                    && !share.contains([',', '/'])
                    && server.trim() == server
                    && share.trim() == share
                    && !share.ends_with('\\')
            }
            _ => true,
        }
}

struct LinkContext {
    form: Form,
    /// Links so far, where each may be there once.
    paths: HashSet<String>,
    /// All links, where none may be below another.
    all: HashSet<String>,
}

impl LinkContext {
    fn link(&mut self, link: &Link, losses: &mut Losses) -> Option<Link> {
        let form = self.form;
        let path = link.path.as_str();
        if !is_link_path(path, form) {
            losses.add(Lost::Names, || path.to_owned());
            return None;
        }
        let is_once =
            matches!(form, Form::DirectoryV2 | Form::Objects | Form::Script | Form::Msdfs);
        if is_once && !self.paths.insert(folded(path)) {
            losses.add(Lost::DuplicateLinks, || path.to_owned());
            return None;
        }
        if form == Form::Msdfs {
            let folded = folded(path);
            let is_below = folded
                .match_indices('\\')
                .take(LEVELS_MAX)
                .any(|(at, _)| folded.get(..at).is_some_and(|above| self.all.contains(above)));
            if is_below {
                losses.add(Lost::NestedLinks, || path.to_owned());
                return None;
            }
            if link.state != State::Online {
                losses.add(Lost::States, || format!("{path} (not online, left out)"));
                return None;
            }
        }
        let targets = targets(&link.targets, form, path, losses);
        if targets.is_empty() && matches!(form, Form::Script | Form::Msdfs) {
            losses.add(Lost::EmptyLinks, || path.to_owned());
            return None;
        }
        let target_bytes =
            || targets.iter().map(|target| target.server.len() + target.share.len() + 100);
        if (form == Form::DirectoryV2 && 2 * target_bytes().sum::<usize>() > TARGET_LIST_BYTES)
            || (form == Form::Msdfs
                && target_bytes().sum::<usize>() - 98 * targets.len() + 6 > SYMLINK_BYTES)
        {
            losses.add(Lost::Names, || format!("{path} (too many targets)"));
            return None;
        }
        let (state, mut other) =
            state(link.state, &link.other, form, Stateful::Volume, path, losses);
        keep_other(&link.other, &mut other, form, Level::Link, path, losses);
        let security = if form == Form::DirectoryV2 { link.security.clone() } else { None };
        if link.security.is_some() && security.is_none() {
            losses.add(Lost::Permissions, || path.to_owned());
        }
        Some(Link {
            path: path.to_owned(),
            state,
            ttl_s: ttl(link.ttl_s, form, LINK_TTL_S, path, losses),
            comment: comment(link.comment.as_ref(), form, false, path, losses),
            flags: flags(&link.flags, form, false, path, losses),
            targets,
            security,
            other,
        })
    }
}

fn is_link_path(path: &str, form: Form) -> bool {
    let has_parts = path.split('\\').all(|part| !part.is_empty());
    is_plain(path)
        && has_parts
        && match form {
            // Room for the domain and the namespace before it.
            Form::DirectoryV1 => utf16_bytes(path) <= BLOB_STRING_BYTES - 1024,
            // The directory and Samba write slashes between parts.
            Form::DirectoryV2 => !path.contains('/'),
            Form::Msdfs => {
                !path.contains('/')
                    && path.split('\\').all(|part| part != "." && part != ".." && part.len() <= 255)
            }
            _ => true,
        }
}
