//! Exports of `dfsutil`: XML of 2003 (numbers) and of 2008 and later (words).
//!
//! Samples: Microsoft's "Migrating your DFS Namespaces in three (sorta) easy steps" (2003) and KB 244380 (the line of a
//! target, 2008). `dfsutil` writes `&` as it is, which is not XML: it is repaired before parsing. No published export of
//! 2008 shows more than `SITECOSTING`, `ROOTSCALABILITY` and `ABDE`, so that other attributes are kept as they are.

use std::collections::BTreeMap;

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::super::form::{FLAG_BITS, Form, Stateful, flags_of_bits, split_target, split_unc};
use super::super::model::{Flags, Link, Namespace, State, Target};
use super::{Context, Damage, Damaged, LINKS_MAX, ReadNamespace, push_target};
use crate::input::lines::LineCounter;
use crate::input::text::repair_ampersands;

/// The key of `other` with the word for "on", where it is not `TRUE`.
pub(crate) const SWITCH: &str = "export:switch";
/// Words for on and off, in pairs.
pub(crate) const SWITCHES: [(&str, &str); 5] =
    [("TRUE", "FALSE"), ("ENABLED", "DISABLED"), ("ON", "OFF"), ("YES", "NO"), ("1", "0")];

#[derive(Default)]
struct Parts {
    namespace: Option<ReadNamespace>,
    link: Option<(Link, usize)>,
    target: Option<(Target, String, usize)>,
    /// Elements around the current position that are not known.
    unknown_depth: usize,
    is_2003: bool,
    targets: usize,
}

pub(super) fn read(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let repaired = repair_ampersands(text);
    let text = repaired.as_deref().unwrap_or(text);
    let mut lines = LineCounter::new(text);
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut parts = Parts::default();
    let mut found = 0;
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let event = reader.read_event().map_err(|error| {
            let at = usize::try_from(reader.error_position()).unwrap_or(at);
            Damage::new(LineCounter::new(text).line(at), format!("damaged XML: {error}"))
        })?;
        let line = lines.line(at);
        match event {
            Event::Start(start) => begin(&start, line, &mut parts, context)?,
            Event::End(end) => {
                found += usize::from(close(end.name().as_ref(), line, &mut parts, context)?);
            }
            Event::Text(piece) => {
                let piece = piece.into_inner();
                match &mut parts.target {
                    Some((_, path, _)) => path.push_str(&piece),
                    None if piece.trim().is_empty() => {}
                    None => context.note(line, &piece),
                }
            }
            Event::GeneralRef(reference) => {
                if let Some((_, path, _)) = &mut parts.target {
                    let name = reference.into_inner();
                    let whole = format!("&{name};");
                    let value = quick_xml::escape::unescape(&whole).map_err(|error| {
                        Damage::new(line, format!("damaged reference: {error}"))
                    })?;
                    path.push_str(&value);
                }
            }
            Event::CData(piece) => {
                if let Some((_, path, _)) = &mut parts.target {
                    path.push_str(&piece.into_inner());
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if let Some(namespace) = &parts.namespace {
        let links = namespace.namespace.links.len();
        let message = format!(
            "the file ends inside the element Root, after {links} whole links: the export is cut; export it again"
        );
        return Err(Damage::new(text.lines().count().max(1), message));
    }
    if found == 0 {
        return Err(Damage::new(
            1,
            "XML without an element Root: not an export of dfsutil (dfsutil root export \\\\domain\\namespace file.xml)",
        ));
    }
    Ok(())
}

fn begin(
    start: &BytesStart<'_>,
    line: usize,
    parts: &mut Parts,
    context: &mut Context<'_>,
) -> Damaged<()> {
    if parts.unknown_depth > 0 {
        parts.unknown_depth += 1;
        return Ok(());
    }
    let name = start.name();
    let name = name.as_ref();
    if name.eq_ignore_ascii_case("Root") && parts.namespace.is_none() {
        let namespace = root(start, line, parts)?;
        parts.namespace = Some(ReadNamespace {
            namespace,
            form: Form::Export2008,
            place: context.place(line),
            link_places: Vec::new(),
            blob_bytes: None,
            root_servers_differ: Vec::new(),
        });
    } else if name.eq_ignore_ascii_case("Link")
        && parts.namespace.is_some()
        && parts.link.is_none()
        && parts.target.is_none()
    {
        parts.link = Some((link(start, line, parts)?, line));
    } else if name.eq_ignore_ascii_case("Target")
        && parts.namespace.is_some()
        && parts.target.is_none()
    {
        parts.target = Some(target(start, line, parts)?);
    } else if parts.namespace.is_some() {
        context.note(line, &format!("element {name}"));
        parts.unknown_depth = 1;
    }
    Ok(())
}

/// Whether a namespace is complete.
fn close(name: &str, line: usize, parts: &mut Parts, context: &mut Context<'_>) -> Damaged<bool> {
    if parts.unknown_depth > 0 {
        parts.unknown_depth -= 1;
        return Ok(false);
    }
    if name.eq_ignore_ascii_case("Target") {
        let Some((mut target, path, start)) = parts.target.take() else { return Ok(false) };
        if target.server.is_empty() {
            let path = path.trim_start().trim_end_matches(['\r', '\n', '\t']);
            let Some((server, share)) = split_target(path) else {
                let message = format!("the target {path:?} is not \\\\server\\share");
                return Err(Damage::new(start, message));
            };
            target.server = server.to_owned();
            target.share = share.to_owned();
        }
        parts.targets += 1;
        if parts.targets > LINKS_MAX {
            return Err(Damage::new(line, format!("more than {LINKS_MAX} targets")));
        }
        let targets = match (&mut parts.link, &mut parts.namespace) {
            (Some((link, _)), _) => &mut link.targets,
            (None, Some(read)) => &mut read.namespace.targets,
            (None, None) => return Ok(false),
        };
        push_target(targets, target).map_err(|message| Damage::new(line, message))?;
    } else if name.eq_ignore_ascii_case("Link") {
        if let (Some((link, line)), Some(read)) = (parts.link.take(), &mut parts.namespace) {
            if read.namespace.links.len() >= LINKS_MAX {
                return Err(Damage::new(line, format!("more than {LINKS_MAX} links")));
            }
            read.namespace.links.push(link);
            read.link_places.push(context.place(line));
        }
    } else if name.eq_ignore_ascii_case("Root")
        && let Some(mut read) = parts.namespace.take()
    {
        if parts.is_2003 {
            read.form = Form::Export2003;
        }
        parts.is_2003 = false;
        context.reading.namespaces.push(read);
        return Ok(true);
    }
    Ok(false)
}

/// Attributes of an element, with their values.
fn attributes(start: &BytesStart<'_>, line: usize) -> Damaged<Vec<(String, String)>> {
    let mut all = Vec::new();
    for attribute in start.attributes() {
        let attribute =
            attribute.map_err(|error| Damage::new(line, format!("damaged attribute: {error}")))?;
        let value = quick_xml::escape::unescape(&attribute.value)
            .map_err(|error| Damage::new(line, format!("damaged attribute value: {error}")))?;
        all.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(all)
}

fn root(start: &BytesStart<'_>, line: usize, parts: &mut Parts) -> Damaged<Namespace> {
    let mut namespace = Namespace::default();
    for (name, value) in attributes(start, line)? {
        match name.to_ascii_lowercase().as_str() {
            "name" => {
                let Some((host, name, _)) = split_unc(&value) else {
                    let message = format!("the root {value:?} is not \\\\domain\\namespace");
                    return Err(Damage::new(line, message));
                };
                namespace.host = host.to_owned();
                namespace.name = name.to_owned();
            }
            "state" => set_state(
                &value,
                Stateful::Volume,
                &mut namespace.state,
                &mut namespace.other,
                parts,
            ),
            "timeout" => namespace.ttl_s = seconds(&value, line)?,
            "comment" => namespace.comment = Some(value),
            "attributes" => bits(&value, line, &mut namespace.flags, &mut namespace.other, parts)?,
            "sitecosting" => {
                namespace.flags.site_costing = switch(&name, &value, &mut namespace.other);
            }
            "rootscalability" => {
                namespace.flags.root_scalability = switch(&name, &value, &mut namespace.other);
            }
            "abde" => {
                namespace.flags.access_based_enumeration =
                    switch(&name, &value, &mut namespace.other);
            }
            _ => {
                namespace.other.insert(format!("export:{name}"), value);
            }
        }
    }
    if namespace.name.is_empty() {
        return Err(Damage::new(line, "the element Root has no attribute Name"));
    }
    Ok(namespace)
}

fn link(start: &BytesStart<'_>, line: usize, parts: &mut Parts) -> Damaged<Link> {
    let mut link = Link::default();
    let mut has_name = false;
    for (name, value) in attributes(start, line)? {
        match name.to_ascii_lowercase().as_str() {
            "name" => {
                value.trim_matches('\\').clone_into(&mut link.path);
                has_name = !link.path.is_empty();
            }
            "state" => set_state(&value, Stateful::Volume, &mut link.state, &mut link.other, parts),
            "timeout" => link.ttl_s = seconds(&value, line)?,
            "comment" => link.comment = Some(value),
            "attributes" => bits(&value, line, &mut link.flags, &mut link.other, parts)?,
            _ => {
                link.other.insert(format!("export:{name}"), value);
            }
        }
    }
    if !has_name {
        return Err(Damage::new(line, "a link has no attribute Name"));
    }
    Ok(link)
}

fn target(
    start: &BytesStart<'_>,
    line: usize,
    parts: &mut Parts,
) -> Damaged<(Target, String, usize)> {
    let mut target = Target::default();
    let mut has_folder = false;
    for (name, value) in attributes(start, line)? {
        match name.to_ascii_lowercase().as_str() {
            "server" => {
                parts.is_2003 = true;
                target.server = value;
            }
            "folder" => {
                has_folder = !value.is_empty();
                target.share = value;
            }
            "state" => {
                set_state(&value, Stateful::Target, &mut target.state, &mut target.other, parts)
            }
            _ => {
                target.other.insert(format!("export:{name}"), value);
            }
        }
    }
    if !target.server.is_empty() && !has_folder {
        return Err(Damage::new(line, format!("the target on {} has no Folder", target.server)));
    }
    Ok((target, String::new(), line))
}

fn set_state(
    value: &str,
    kind: Stateful,
    state: &mut State,
    other: &mut BTreeMap<String, String>,
    parts: &mut Parts,
) {
    let (read, detail) = kind.state_of_text(value);
    *state = read;
    if let Some(detail) = detail {
        other.insert(super::super::form::STATE_DETAIL.to_owned(), detail);
    }
    if kind == Stateful::Volume
        && parts.namespace.is_none()
        && value.trim().bytes().all(|byte| byte.is_ascii_digit())
    {
        parts.is_2003 = true;
    }
}

fn seconds(value: &str, line: usize) -> Damaged<Option<u32>> {
    let value = value.trim();
    value
        .parse()
        .map(Some)
        .map_err(|_| Damage::new(line, format!("the timeout {value:?} is not a number of seconds")))
}

/// The number `Attributes`: flags, and bits without a flag.
fn bits(
    value: &str,
    line: usize,
    flags: &mut Flags,
    other: &mut BTreeMap<String, String>,
    parts: &mut Parts,
) -> Damaged<()> {
    let number: u32 = value
        .trim()
        .parse()
        .map_err(|_| Damage::new(line, format!("the attributes {value:?} are not a number")))?;
    parts.is_2003 = true;
    let enumeration = flags.access_based_enumeration;
    *flags = flags_of_bits(number);
    flags.access_based_enumeration = enumeration;
    if number & !FLAG_BITS != 0 {
        other.insert("export:Attributes".to_owned(), (number & !FLAG_BITS).to_string());
    }
    Ok(())
}

/// A flag's word; one that is not known is kept as it is.
fn switch(name: &str, value: &str, other: &mut BTreeMap<String, String>) -> Option<bool> {
    for (number, (on, off)) in SWITCHES.iter().enumerate() {
        let is_on = value.trim().eq_ignore_ascii_case(on);
        if is_on || value.trim().eq_ignore_ascii_case(off) {
            if number > 0 {
                other.insert(SWITCH.to_owned(), (*on).to_owned());
            }
            return Some(is_on);
        }
    }
    other.insert(format!("export:{name}"), value.to_owned());
    None
}
