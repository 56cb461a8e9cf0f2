//! Exports of `dfsutil`, with names escaped as XML requires: `&` that `dfsutil` itself writes bare.
//!
//! Layout of the published samples: one line for each element, tabs.

use super::super::form::{FLAG_BITS, STATE_DETAIL, Stateful, bits_of_flags};
use super::super::model::{Flags, Namespace, State, Target};
use super::super::read::{SWITCH, SWITCHES};
use crate::input::text::escape_xml;
use std::collections::BTreeMap;

/// Writes an export of 2003 or of 2008.
pub(super) fn write(namespace: &Namespace, is_2003: bool) -> String {
    let mut out = Out { text: String::with_capacity(200 * (namespace.links.len() + 1)), is_2003 };
    out.text.push_str("<?xml version=\"1.0\"?>\n<Root");
    let path = format!("\\\\{}\\{}", namespace.host, namespace.name);
    out.attribute("Name", &path);
    out.common(namespace.state, namespace.ttl_s, namespace.comment.as_deref(), &namespace.other);
    if is_2003 {
        out.bits(&namespace.flags, &namespace.other);
    } else {
        let on = namespace.other.get(SWITCH).map_or("TRUE", String::as_str);
        let words = SWITCHES.iter().find(|(word, _)| *word == on).unwrap_or(&SWITCHES[0]);
        for (name, flag) in [
            ("SITECOSTING", namespace.flags.site_costing),
            ("ROOTSCALABILITY", namespace.flags.root_scalability),
            ("ABDE", namespace.flags.access_based_enumeration),
        ] {
            if let Some(flag) = flag {
                out.attribute(name, if flag { words.0 } else { words.1 });
            }
        }
    }
    out.others(&namespace.other);
    out.text.push_str(" >\n");
    for target in &namespace.targets {
        out.target(target, "\t");
    }
    for link in &namespace.links {
        out.text.push_str("\t<Link");
        out.attribute("Name", &link.path);
        out.common(link.state, link.ttl_s, link.comment.as_deref(), &link.other);
        if is_2003 {
            out.bits(&link.flags, &link.other);
        }
        out.others(&link.other);
        out.text.push_str(" >\n");
        for target in &link.targets {
            out.target(target, "\t\t");
        }
        out.text.push_str("\t</Link>\n");
    }
    out.text.push_str("</Root>\n");
    out.text
}

struct Out {
    text: String,
    is_2003: bool,
}

impl Out {
    fn attribute(&mut self, name: &str, value: &str) {
        self.text.push(' ');
        self.text.push_str(name);
        self.text.push_str("=\"");
        escape_xml(&mut self.text, value);
        self.text.push('"');
    }

    fn state(&mut self, kind: Stateful, state: State, other: &BTreeMap<String, String>) {
        match kind.code(state, other).filter(|_| self.is_2003) {
            Some(code) => self.attribute("State", &code.to_string()),
            None => self.attribute("State", &kind.word(state, other)),
        }
    }

    fn common(
        &mut self,
        state: State,
        ttl_s: Option<u32>,
        comment: Option<&str>,
        other: &BTreeMap<String, String>,
    ) {
        if let Some(comment) = comment {
            self.attribute("Comment", comment);
        }
        self.state(Stateful::Volume, state, other);
        if let Some(ttl_s) = ttl_s {
            self.attribute("Timeout", &ttl_s.to_string());
        }
    }

    /// The number of the flags, if anything says which are set.
    fn bits(&mut self, flags: &Flags, other: &BTreeMap<String, String>) {
        let rest: u32 =
            other.get("export:Attributes").and_then(|bits| bits.parse().ok()).unwrap_or_default();
        if flags.site_costing.is_some() || rest != 0 {
            self.attribute("Attributes", &(bits_of_flags(flags) | rest & !FLAG_BITS).to_string());
        }
    }

    /// Attributes that were not understood when the export was read.
    fn others(&mut self, other: &BTreeMap<String, String>) {
        for (key, value) in other {
            let name = key.strip_prefix("export:").unwrap_or_default();
            if !name.is_empty() && key != STATE_DETAIL && key != SWITCH && name != "Attributes" {
                self.attribute(name, value);
            }
        }
    }

    fn target(&mut self, target: &Target, indentation: &str) {
        self.text.push_str(indentation);
        self.text.push_str("<Target");
        if self.is_2003 {
            self.attribute("Server", &target.server);
            self.attribute("Folder", &target.share);
            self.state(Stateful::Target, target.state, &target.other);
            self.others(&target.other);
            self.text.push_str(" />\n");
        } else {
            self.state(Stateful::Target, target.state, &target.other);
            self.others(&target.other);
            self.text.push_str(" >\\\\");
            escape_xml(&mut self.text, &target.server);
            self.text.push('\\');
            escape_xml(&mut self.text, &target.share);
            self.text.push_str("</Target>\n");
        }
    }
}
