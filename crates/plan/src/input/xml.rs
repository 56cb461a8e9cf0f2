//! XML as a tree, with limits of depth and elements. Names have no prefixes.
//!
//! A damaged document keeps the elements that were complete before the damage. Entities of a document type are not
//! expanded; their names stay in the text.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::lines::LineCounter;

/// Elements within each other; policies have less than twenty.
const DEPTH_MAX: usize = 64;
/// Elements of one document.
const ELEMENTS_MAX: usize = 500_000;

#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Node>,
    /// Text directly in the element.
    pub(crate) text: String,
    /// Line of its start.
    pub(crate) line: u64,
    /// Whether its end was there.
    pub(crate) is_complete: bool,
}

impl Node {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name.eq_ignore_ascii_case(name))
    }

    /// Text of a child, if it has that child.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }

    /// Text of a child without space around it, if there is any.
    pub(crate) fn word_of(&self, name: &str) -> Option<&str> {
        self.text_of(name).map(str::trim).filter(|text| !text.is_empty())
    }

    /// All elements with that name below this one, in the order of the document.
    pub(crate) fn below<'a>(&'a self, name: &str) -> Vec<&'a Self> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(node) = open.pop() {
            if node.name.eq_ignore_ascii_case(name) && !std::ptr::eq(node, self) {
                found.push(node);
            }
            open.extend(node.children.iter().rev());
        }
        found
    }
}

/// A document: its root, and where and why it ends too early.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) root: Node,
    pub(crate) damage: Option<(u64, String)>,
}

/// Name of the root element in the first bytes of a document.
pub(crate) fn root_name(text: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) | Event::Empty(start) => return Some(local(&start)),
            Event::Text(text) if text.trim().trim_start_matches('\u{feff}').is_empty() => {}
            Event::Text(_)
            | Event::CData(_)
            | Event::GeneralRef(_)
            | Event::End(_)
            | Event::Eof => {
                return None;
            }
            _ => {}
        }
    }
}

fn local(start: &BytesStart<'_>) -> String {
    start.local_name().as_ref().to_owned()
}

pub(crate) fn parse(text: &str) -> Document {
    let mut reader = Reader::from_str(text);
    let mut counter = LineCounter::new(text);
    let mut line_at =
        |position| counter.line(usize::try_from(position).unwrap_or(usize::MAX)) as u64;
    // The node 0 is the document itself.
    let mut open = vec![Node::default()];
    let mut elements = 0;
    let damage = loop {
        let start = reader.buffer_position();
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                elements += 1;
                if open.len() > DEPTH_MAX {
                    break Some((
                        line_at(start),
                        format!("more than {DEPTH_MAX} elements within each other"),
                    ));
                }
                if elements > ELEMENTS_MAX {
                    break Some((line_at(start), format!("more than {ELEMENTS_MAX} elements")));
                }
                open.push(node(&element, line_at(start)));
            }
            Ok(Event::Empty(element)) => {
                elements += 1;
                if elements > ELEMENTS_MAX {
                    break Some((line_at(start), format!("more than {ELEMENTS_MAX} elements")));
                }
                let mut node = node(&element, line_at(start));
                node.is_complete = true;
                if let Some(parent) = open.last_mut() {
                    parent.children.push(node);
                }
            }
            Ok(Event::End(_)) => close(&mut open, true),
            Ok(Event::Text(text)) => push(&mut open, &text.xml10_content()),
            Ok(Event::CData(text)) => push(&mut open, &text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => match reference.resolve_char_ref() {
                Ok(Some(letter)) => push(&mut open, letter.encode_utf8(&mut [0; 4])),
                _ => match quick_xml::escape::resolve_predefined_entity(&reference) {
                    Some(text) => push(&mut open, text),
                    None => push(&mut open, &format!("&{};", &*reference)),
                },
            },
            Ok(Event::Eof) if open.len() > 1 => {
                let name = open.last().map(|node| node.name.clone()).unwrap_or_default();
                break Some((line_at(start), format!("the document ends within <{name}>")));
            }
            Ok(Event::Eof) => break None,
            Ok(_) => {}
            Err(error) => {
                break Some((line_at(reader.error_position()), format!("not XML: {error}")));
            }
        }
    };
    while open.len() > 1 {
        close(&mut open, false);
    }
    let mut document = open.pop().unwrap_or_default();
    let root = if document.children.is_empty() {
        Node::default()
    } else {
        document.children.swap_remove(0)
    };
    let damage = damage.or_else(|| {
        document
            .children
            .first()
            .map(|node| (node.line, "text behind the end of the document".to_owned()))
    });
    Document { root, damage }
}

fn node(start: &BytesStart<'_>, line: u64) -> Node {
    let attributes = start.html_attributes().filter_map(|attribute| {
        let attribute = attribute.ok()?;
        let name = attribute.key.local_name().as_ref().to_owned();
        let value = quick_xml::escape::unescape(&attribute.value)
            .map_or_else(|_| attribute.value.clone().into_owned(), |value| value.into_owned());
        Some((name, value))
    });
    Node { name: local(start), attributes: attributes.collect(), line, ..Node::default() }
}

fn close(open: &mut Vec<Node>, is_complete: bool) {
    if open.len() < 2 {
        return;
    }
    if let Some(mut node) = open.pop() {
        node.is_complete = is_complete;
        if let Some(parent) = open.last_mut() {
            parent.children.push(node);
        }
    }
}

fn push(open: &mut [Node], text: &str) {
    if let [_, .., node] = open {
        node.text.push_str(text);
    }
}
