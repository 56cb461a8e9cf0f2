//! A reader of DER elements for the few ASN.1 shapes of SPNEGO and Kerberos.
//!
//! X.690 section 8.1 and 10.1: one-byte tags and definite lengths only, nothing else occurs there.
//! It walks one level; callers go down step by step, so that no input decides the depth. An
//! element that was cut off by the capture is returned with the bytes that are there.

use crate::read::{slice_at, u8_at};

/// Tags of the universal class, and the constructed context tags `[0]`, `[1]`...
pub(super) mod tag {
    pub const INTEGER: u8 = 0x02;
    pub const OCTET_STRING: u8 = 0x04;
    pub const OBJECT_IDENTIFIER: u8 = 0x06;
    pub const ENUMERATED: u8 = 0x0a;
    pub const SEQUENCE: u8 = 0x30;
    pub const GSS_INITIAL: u8 = 0x60;

    /// The tag of the explicitly tagged field `[number]`.
    pub const fn field(number: u8) -> u8 {
        0xa0 | number
    }
}

/// One element: its tag and the bytes of its content that were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// Whether `content` is all of it.
    pub whole: bool,
}

impl<'a> Element<'a> {
    /// The elements inside this one.
    pub fn children(&self) -> Elements<'a> {
        Elements(self.content)
    }

    /// The first element inside this one when it has the tag.
    pub fn child(&self, tag: u8) -> Option<Element<'a>> {
        self.children().next().filter(|child| child.tag == tag)
    }

    /// What is inside the explicitly tagged field `[number]` of this sequence.
    pub fn field(&self, number: u8) -> Option<Element<'a>> {
        self.children().find(|child| child.tag == tag::field(number))?.children().next()
    }

    /// The content of a leaf, if captured whole.
    pub fn leaf(&self) -> Option<&'a [u8]> {
        self.whole.then_some(self.content)
    }

    /// The value of an INTEGER or ENUMERATED that fits in 32 bits.
    pub fn integer(&self) -> Option<i32> {
        let bytes = self.leaf()?;
        if !matches!(self.tag, tag::INTEGER | tag::ENUMERATED) || bytes.len() > 4 {
            return None;
        }
        let start = if *bytes.first()? & 0x80 == 0 { 0 } else { -1 };
        Some(bytes.iter().fold(start, |value: i32, &byte| value << 8 | i32::from(byte)))
    }
}

/// The elements that follow one another in some bytes; it ends at the first that makes no sense.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a>(pub &'a [u8]);

impl<'a> Elements<'a> {
    /// The bytes after the elements read so far.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (element, rest) = split(self.0)?;
        self.0 = rest;
        Some(element)
    }
}

/// The element at the start of `bytes`.
pub(super) fn first(bytes: &[u8]) -> Option<Element<'_>> {
    Elements(bytes).next()
}

fn split(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let tag = u8_at(bytes, 0)?;
    if tag & 0x1f == 0x1f {
        return None;
    }
    let short = usize::from(u8_at(bytes, 1)?);
    let (start, length) = if short < 0x80 {
        (2, short)
    } else {
        let octets = short & 0x7f;
        if octets == 0 || octets > 4 {
            return None;
        }
        let length = slice_at(bytes, 2, octets)?
            .iter()
            .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        (2 + octets, usize::try_from(length).ok()?)
    };
    let body = bytes.get(start..)?;
    let (content, rest, whole) = match body.split_at_checked(length) {
        Some((content, rest)) => (content, rest, true),
        None => (body, &[][..], false),
    };
    let element = Element { tag, content, whole };
    Some((element, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lengths_of_both_forms_and_refuses_the_indefinite_one() {
        let mut elements = Elements(&[0x02, 1, 5, 0x04, 0x82, 0, 2, 7, 8, 0x30, 0x80, 0, 0]);
        assert_eq!(elements.next().unwrap().integer(), Some(5));
        assert_eq!(elements.next().unwrap().content, [7, 8]);
        assert_eq!(elements.next(), None);
        assert_eq!(first(&[0x1f, 1, 0]), None, "long tags");
        assert_eq!(first(&[0x04, 0x85, 0, 0, 0, 0, 1, 9]), None, "40-bit length");
    }

    #[test]
    fn integers_have_a_sign() {
        assert_eq!(first(&[0x02, 1, 0xff]).unwrap().integer(), Some(-1));
        assert_eq!(first(&[0x02, 2, 0xff, 0x79]).unwrap().integer(), Some(-135));
        assert_eq!(first(&[0x02, 2, 0x00, 0x80]).unwrap().integer(), Some(128));
        assert_eq!(first(&[0x02, 0]).unwrap().integer(), None);
        assert_eq!(first(&[0x02, 5, 1, 1, 1, 1, 1]).unwrap().integer(), None);
    }

    #[test]
    fn a_cut_element_keeps_its_beginning() {
        let element = first(&[0x30, 10, 0x04, 1, 9, 0x04, 5, 1]).unwrap();
        assert!(!element.whole);
        let children: Vec<_> = element.children().collect();
        assert_eq!(children.len(), 2);
        assert_eq!(children[0].leaf(), Some(&[9][..]));
        assert_eq!(children[1].leaf(), None);
        assert_eq!(children[1].content, [1]);
    }
}
