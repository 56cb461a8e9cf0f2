//! `dfsutil /view` and `dfsutil root`: a namespace as text with numbers or words of states, the sites of its targets and
//! the size of its blob.
//!
//! Sample: an output of version 5.2 as published by its users.

use super::super::form::{
    FLAG_BITS, Form, STATE_DETAIL, Stateful, flags_of_bits, split_target, split_unc,
};
use super::super::model::{Kind, Link, Namespace, Target};
use super::fragments::{after, quoted_pairs};
use super::{Context, Damage, Damaged, ReadNamespace, push_target};
use crate::input::lines::Lines;

/// Whether the next line begins such an output.
pub(super) fn starts(line: &str) -> bool {
    let line = line.trim();
    is_heading(line) || after(line, "Root Name=\"").is_some()
}

fn is_heading(line: &str) -> bool {
    line.contains("Root with ") && line.contains(" Links")
}

pub(super) fn read(lines: &mut Lines<'_>, context: &mut Context<'_>) -> Damaged<()> {
    let mut namespace = Namespace::default();
    let mut blob_bytes = None;
    let mut announced = None;
    let first = lines.number();
    // The heading, and settings up to the root.
    while let Some(line) = lines.peek() {
        let text = line.trim();
        if is_heading(text) {
            if after(text, "Domain").is_some() {
                // A domain root of mode 2008 has no blob.
                namespace.kind =
                    Some(if text.contains("[Blob Size") { Kind::DomainV1 } else { Kind::DomainV2 });
            } else if after(text, "Standalone").is_some() {
                namespace.kind = Some(Kind::Standalone);
            }
            blob_bytes = number_after(text, "Blob Size:");
            announced = number_after(text, "Root with ");
        } else if after(text, "Root Name=\"").is_some() {
            break;
        } else if let Some((name, value)) = text.split_once(':') {
            let value = value.trim();
            let is_on = match value.to_ascii_uppercase().as_str() {
                "ENABLED" => Some(true),
                "DISABLED" => Some(false),
                _ => None,
            };
            match (name.trim().to_ascii_lowercase().as_str(), is_on) {
                ("sitecosting", Some(is_on)) => namespace.flags.site_costing = Some(is_on),
                ("rootscalability", Some(is_on)) => namespace.flags.root_scalability = Some(is_on),
                ("abde" | "abe", Some(is_on)) => {
                    namespace.flags.access_based_enumeration = Some(is_on);
                }
                _ => context.note(lines.number(), text),
            }
        } else if !text.is_empty() {
            context.note(lines.number(), text);
        }
        lines.skip(1);
    }
    let Some(root) = lines.take() else {
        return Err(Damage::new(
            first,
            "dfsutil's heading without the line of the root: the output is cut",
        ));
    };
    let line = lines.number() - 1;
    let (pairs, _) = quoted_pairs(root);
    for (name, value) in pairs {
        match name.to_ascii_lowercase().as_str() {
            "name" => {
                let Some((host, name, _)) = split_unc(value) else {
                    let message = format!("the root {value:?} is not \\\\domain\\namespace");
                    return Err(Damage::new(line, message));
                };
                namespace.host = host.to_owned();
                namespace.name = name.to_owned();
            }
            "state" => {
                let (state, detail) = Stateful::Volume.state_of_text(value);
                namespace.state = state;
                namespace.other.extend(detail.map(|detail| (STATE_DETAIL.to_owned(), detail)));
            }
            "timeout" => namespace.ttl_s = Some(number(value, line)?),
            "comment" => namespace.comment = Some(value.to_owned()),
            "attributes" => {
                let bits = number(value, line)?;
                let enumeration = namespace.flags.access_based_enumeration;
                namespace.flags = flags_of_bits(bits);
                namespace.flags.access_based_enumeration = enumeration;
                if bits & !FLAG_BITS != 0 {
                    let kept = (bits & !FLAG_BITS).to_string();
                    namespace.other.insert("view:Attributes".to_owned(), kept);
                }
            }
            _ => {
                namespace.other.insert(format!("view:{name}"), value.to_owned());
            }
        }
    }
    let place = context.place(line);
    let mut link_places = Vec::new();
    let mut is_complete = announced.is_none();
    while let Some(text) = lines.peek() {
        let text = text.trim();
        let line = lines.number();
        if after(text, "Link Name=\"").is_some() {
            namespace.links.push(link(text, line)?);
            link_places.push(context.place(line));
        } else if after(text, "Target ").is_some() || after(text, "Target=").is_some() {
            let target = target(text, line)?;
            let targets = match namespace.links.last_mut() {
                Some(link) => &mut link.targets,
                None => &mut namespace.targets,
            };
            push_target(targets, target).map_err(|message| Damage::new(line, message))?;
        } else if is_heading(text) {
            // The last line repeats the heading; that of another namespace follows something else.
            if after(text, "Root with ").is_some() {
                is_complete = true;
                lines.skip(1);
            }
            break;
        } else if !text.is_empty() {
            break;
        }
        lines.skip(1);
    }
    let links = namespace.links.len() as u64;
    if announced.is_some_and(|announced| announced != links) || !is_complete {
        let message = format!(
            "dfsutil announces {} links, and {links} follow: the output is cut",
            announced.unwrap_or_default()
        );
        return Err(Damage::new(lines.number().saturating_sub(1).max(1), message));
    }
    context.reading.namespaces.push(ReadNamespace {
        namespace,
        form: Form::View,
        place,
        link_places,
        blob_bytes,
        root_servers_differ: Vec::new(),
    });
    Ok(())
}

fn link(text: &str, line: usize) -> Damaged<Link> {
    let mut link = Link::default();
    for (name, value) in quoted_pairs(text).0 {
        match name.to_ascii_lowercase().as_str() {
            "name" => value.trim_matches('\\').clone_into(&mut link.path),
            "state" => {
                let (state, detail) = Stateful::Volume.state_of_text(value);
                link.state = state;
                link.other.extend(detail.map(|detail| (STATE_DETAIL.to_owned(), detail)));
            }
            "timeout" => link.ttl_s = Some(number(value, line)?),
            "comment" => link.comment = Some(value.to_owned()),
            _ => {
                link.other.insert(format!("view:{name}"), value.to_owned());
            }
        }
    }
    if link.path.is_empty() {
        return Err(Damage::new(line, "a link has no name"));
    }
    Ok(link)
}

fn target(text: &str, line: usize) -> Damaged<Target> {
    let mut target = Target::default();
    let (pairs, rest) = quoted_pairs(text);
    for (name, value) in pairs {
        match name.to_ascii_lowercase().as_str() {
            "server" => value.clone_into(&mut target.server),
            "folder" => value.clone_into(&mut target.share),
            "target" => {
                let Some((server, share)) = split_target(value) else {
                    let message = format!("the target {value:?} is not \\\\server\\share");
                    return Err(Damage::new(line, message));
                };
                server.clone_into(&mut target.server);
                share.clone_into(&mut target.share);
            }
            "state" => {
                let (state, detail) = Stateful::Target.state_of_text(value);
                target.state = state;
                target.other.extend(detail.map(|detail| (STATE_DETAIL.to_owned(), detail)));
            }
            _ => {
                target.other.insert(format!("view:{name}"), value.to_owned());
            }
        }
    }
    if let Some((_, site)) = rest.split_once("[Site:") {
        let site = site.split(']').next().unwrap_or_default().trim();
        target.other.insert("view:site".to_owned(), site.to_owned());
    }
    if target.server.is_empty() || target.share.is_empty() {
        return Err(Damage::new(line, "a target has no server or no folder"));
    }
    Ok(target)
}

fn number(value: &str, line: usize) -> Damaged<u32> {
    value.trim().parse().map_err(|_| Damage::new(line, format!("{value:?} is not a number")))
}

/// The number that follows a text.
fn number_after(line: &str, text: &str) -> Option<u64> {
    let (_, rest) = line.split_once(text)?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
