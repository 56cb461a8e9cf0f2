//! The metadata of CTF 2: fragments in JSON, each after a record separator (CTF 2, section 5; RFC 7464).
//!
//! Fields are found by their role where they have one, whatever their name is. A fragment that cannot be
//! read is counted and left out. Not read: texts in UTF-16 and UTF-32, and bits in an unusual order.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::metadata::{Clock, EventClass, Metadata, StreamClass};
use super::types::{ALIGN_BITS_MAX, Integer, Length, NameId, Type, TypeId};
use crate::bytes::Order;

const SEPARATOR: char = '\u{1e}';
/// Longest fragment; those of LTTng's longest enumerations have 100 KiB.
const FRAGMENT_BYTES_MAX: usize = 4 << 20;
/// Most fields of a structure, options of a variant, and ranges of an option.
const FIELDS_MAX: usize = 4096;
/// Most places that are named.
const DAMAGED_MAX: usize = 16;

type Object = Map<String, Value>;

/// Whether the text begins like such metadata.
pub fn is_json(head: &[u8]) -> bool {
    let rest = head.strip_prefix(&[SEPARATOR as u8]);
    rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"))
}

/// Reads the text.
pub fn parse(text: &str) -> Metadata {
    let mut parser = Parser::default();
    // Fragments follow separators.
    for (number, fragment) in text.split(SEPARATOR).enumerate().skip(1) {
        if parser.fragment(fragment).is_none() && parser.metadata.damaged.len() < DAMAGED_MAX {
            parser.metadata.damaged.push(format!("fragment {number}"));
        }
    }
    parser.metadata
}

#[derive(Default)]
struct Parser {
    metadata: Metadata,
    /// Field classes with a name.
    aliases: HashMap<String, TypeId>,
    /// Bits of the last field of a name, where it is a signed integer.
    signed_bits: HashMap<NameId, u32>,
}

impl Parser {
    fn fragment(&mut self, text: &str) -> Option<()> {
        if text.len() > FRAGMENT_BYTES_MAX {
            return None;
        }
        let value: Value = serde_json::from_str(text).ok()?;
        let fragment = value.as_object()?;
        match text_of(fragment, "type")? {
            "preamble" => return (number(fragment, "version") == Some(2)).then_some(()),
            "trace-class" => {
                self.metadata.packet_header = self.member(fragment, "packet-header-field-class")?;
                let environment = fragment.get("environment").and_then(Value::as_object);
                let release = environment.and_then(|all| text_of(all, "kernel_release"));
                if let Some(release) = release {
                    self.metadata.set_kernel(release);
                }
            }
            "clock-class" if self.metadata.clock.is_none() => {
                self.metadata.clock = Some(clock(fragment)?);
            }
            "data-stream-class" => {
                let class = StreamClass {
                    packet_context: self.member(fragment, "packet-context-field-class")?,
                    event_header: self.member(fragment, "event-record-header-field-class")?,
                    event_context: self
                        .member(fragment, "event-record-common-context-field-class")?,
                };
                self.metadata.streams.insert(id(fragment, "id"), class);
            }
            "event-record-class" => {
                let class = EventClass {
                    name: text_of(fragment, "name").unwrap_or_default().to_owned(),
                    context: self.member(fragment, "specific-context-field-class")?,
                    fields: self.member(fragment, "payload-field-class")?,
                };
                let place = (id(fragment, "data-stream-class-id"), id(fragment, "id"));
                self.metadata.events.insert(place, class);
            }
            "field-class-alias" => {
                let class = self.member(fragment, "field-class")??;
                self.aliases.insert(text_of(fragment, "name")?.to_owned(), class);
            }
            // Other clocks, and fragments of extensions.
            _ => {}
        }
        Some(())
    }

    /// The field class in that property, if it is there; `None` if it cannot be read.
    fn member(&mut self, object: &Object, key: &str) -> Option<Option<TypeId>> {
        match object.get(key) {
            None => Some(None),
            Some(class) => self.class(class).map(Some),
        }
    }

    /// A field class. The reader of JSON bounds how deep they are nested.
    fn class(&mut self, class: &Value) -> Option<TypeId> {
        if let Some(alias) = class.as_str() {
            return self.aliases.get(alias).copied();
        }
        let class = class.as_object()?;
        let one = match text_of(class, "type")? {
            "fixed-length-bit-array"
            | "fixed-length-bit-map"
            | "fixed-length-boolean"
            | "fixed-length-unsigned-integer" => Type::Integer(self.integer(class, false)?),
            "fixed-length-signed-integer" => Type::Integer(self.integer(class, true)?),
            "fixed-length-floating-point-number" => {
                Type::Float { bits: bits(class, "length")?, align_bits: alignment(class, 1)? }
            }
            "variable-length-unsigned-integer" => Type::Variable(self.variable(class, false)),
            "variable-length-signed-integer" => Type::Variable(self.variable(class, true)),
            "null-terminated-string" if is_bytes(class) => Type::Text,
            "static-length-string" if is_bytes(class) => {
                self.bytes(Length::Fixed(number(class, "length")?), true)?
            }
            "dynamic-length-string" if is_bytes(class) => {
                let length = self.location(class, "length-field-location")?;
                self.bytes(Length::Field(length), true)?
            }
            "static-length-blob" => self.bytes(Length::Fixed(number(class, "length")?), false)?,
            "dynamic-length-blob" => {
                let length = self.location(class, "length-field-location")?;
                self.bytes(Length::Field(length), false)?
            }
            "static-length-array" => self.array(class, Length::Fixed(number(class, "length")?))?,
            "dynamic-length-array" => {
                let length = self.location(class, "length-field-location")?;
                self.array(class, Length::Field(length))?
            }
            "structure" => self.structure(class)?,
            "variant" => self.variant(class)?,
            "optional" => self.optional(class)?,
            _ => return None,
        };
        self.metadata.types.add(one)
    }

    fn integer(&mut self, class: &Object, is_signed: bool) -> Option<Integer> {
        let order = order(class)?;
        let (alias, is_clock) = self.role(class);
        let bits = bits(class, "length")?;
        let align_bits = alignment(class, 1)?;
        Some(Integer { bits, align_bits, is_signed, order, is_character: false, is_clock, alias })
    }

    fn variable(&mut self, class: &Object, is_signed: bool) -> Integer {
        let (alias, is_clock) = self.role(class);
        Integer {
            bits: u64::BITS,
            align_bits: 8,
            is_signed,
            order: Order::Little,
            is_character: false,
            is_clock,
            alias,
        }
    }

    /// The name that a field with that role has in CTF 1.8, and whether it is a time of the clock.
    fn role(&mut self, class: &Object) -> (Option<NameId>, bool) {
        let roles = class.get("roles").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_clock = roles.iter().any(|role| role == "default-clock-timestamp");
        let name = roles.iter().filter_map(Value::as_str).find_map(|role| {
            Some(match role {
                "packet-magic-number" => "magic",
                "data-stream-class-id" => "stream_id",
                "packet-total-length" => "packet_size",
                "packet-content-length" => "content_size",
                "default-clock-timestamp" => "timestamp_begin",
                "discarded-event-record-counter-snapshot" => "events_discarded",
                "packet-sequence-number" => "packet_seq_num",
                "event-record-class-id" => "id",
                _ => return None,
            })
        });
        (name.map(|name| self.metadata.types.intern(name)), is_clock)
    }

    /// The last name of a field's place.
    fn location(&mut self, class: &Object, key: &str) -> Option<NameId> {
        let location = class.get(key)?;
        let path = location.get("path").unwrap_or(location).as_array()?;
        let name = path.iter().rev().find_map(Value::as_str)?;
        Some(self.metadata.types.intern(name))
    }

    fn bytes(&mut self, length: Length, is_character: bool) -> Option<Type> {
        let byte = Integer {
            bits: 8,
            align_bits: 8,
            is_signed: false,
            order: Order::Little,
            is_character,
            is_clock: false,
            alias: None,
        };
        let element = self.metadata.types.add(Type::Integer(byte))?;
        Some(Type::Array { element, length, align_bits: 8 })
    }

    fn array(&mut self, class: &Object, length: Length) -> Option<Type> {
        let element = self.class(class.get("element-field-class")?)?;
        let align_bits = alignment_of(class, "minimum-alignment", 1)?;
        Some(Type::Array { element, length, align_bits })
    }

    fn structure(&mut self, class: &Object) -> Option<Type> {
        let mut fields = Vec::new();
        for member in list(class, "member-classes")? {
            let member = member.as_object()?;
            let field = self.class(member.get("field-class")?)?;
            let name = self.metadata.types.intern(text_of(member, "name")?);
            match self.metadata.types.get(field) {
                Some(Type::Integer(one) | Type::Variable(one)) if one.is_signed => {
                    self.signed_bits.insert(name, one.bits);
                }
                _ => drop(self.signed_bits.remove(&name)),
            }
            fields.push((name, field));
        }
        Some(Type::Struct { fields, align_bits: alignment_of(class, "minimum-alignment", 1)? })
    }

    fn variant(&mut self, class: &Object) -> Option<Type> {
        let selector = self.location(class, "selector-field-location")?;
        let mut options = Vec::new();
        for option in list(class, "options")? {
            let option = option.as_object()?;
            let field = self.class(option.get("field-class")?)?;
            options.push((ranges(option)?, field));
        }
        let signed_bits = self.signed_bits.get(&selector).copied();
        Some(Type::Choice { selector, signed_bits, options, is_optional: false })
    }

    fn optional(&mut self, class: &Object) -> Option<Type> {
        let selector = self.location(class, "selector-field-location")?;
        let field = self.class(class.get("field-class")?)?;
        // A boolean has no ranges: it is there unless that is zero.
        let ranges = if class.contains_key("selector-field-ranges") {
            ranges(class)?
        } else {
            vec![(i128::MIN, -1), (1, i128::MAX)]
        };
        let signed_bits = self.signed_bits.get(&selector).copied();
        let options = vec![(ranges, field)];
        Some(Type::Choice { selector, signed_bits, options, is_optional: true })
    }
}

fn clock(fragment: &Object) -> Option<Clock> {
    let offset = fragment.get("offset-from-origin").and_then(Value::as_object);
    let part = |key| offset.and_then(|offset| offset.get(key)).and_then(Value::as_i64);
    Some(Clock {
        name: ["name", "id"]
            .iter()
            .find_map(|key| text_of(fragment, key))
            .unwrap_or_default()
            .to_owned(),
        frequency: number(fragment, "frequency").filter(|&hz| hz > 0)?.into(),
        offset: part("cycles").unwrap_or(0).into(),
        offset_seconds: part("seconds").unwrap_or(0).into(),
    })
}

fn text_of<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str()
}

fn number(object: &Object, key: &str) -> Option<u64> {
    object.get(key)?.as_u64()
}

fn id(object: &Object, key: &str) -> u64 {
    number(object, key).unwrap_or(0)
}

/// Entries, which can be absent.
fn list<'a>(object: &'a Object, key: &str) -> Option<&'a [Value]> {
    match object.get(key) {
        None => Some(&[]),
        Some(entries) => {
            entries.as_array().filter(|all| all.len() <= FIELDS_MAX).map(Vec::as_slice)
        }
    }
}

fn ranges(option: &Object) -> Option<Vec<(i128, i128)>> {
    let bound = |bound: &Value| match bound.as_u64() {
        Some(bound) => Some(i128::from(bound)),
        None => bound.as_i64().map(i128::from),
    };
    let range = |range: &Value| match range.as_array()?.as_slice() {
        [first, last] => Some((bound(first)?, bound(last)?)),
        _ => None,
    };
    list(option, "selector-field-ranges")?.iter().map(range).collect()
}

fn bits(class: &Object, key: &str) -> Option<u32> {
    let bits = number(class, key).and_then(|bits| u32::try_from(bits).ok());
    bits.filter(|bits| (1..=u64::BITS).contains(bits))
}

fn alignment(class: &Object, natural: u32) -> Option<u32> {
    alignment_of(class, "alignment", natural)
}

fn alignment_of(class: &Object, key: &str, natural: u32) -> Option<u32> {
    let Some(bits) = class.get(key) else { return Some(natural) };
    let bits = u32::try_from(bits.as_u64()?).ok()?;
    (bits.is_power_of_two() && bits <= ALIGN_BITS_MAX).then_some(bits)
}

/// The order of bytes, if that of the bits is the usual one.
fn order(class: &Object) -> Option<Order> {
    let (order, usual) = match text_of(class, "byte-order")? {
        "little-endian" => (Order::Little, "first-to-last"),
        "big-endian" => (Order::Big, "last-to-first"),
        _ => return None,
    };
    text_of(class, "bit-order").is_none_or(|bits| bits == usual).then_some(order)
}

/// Whether the characters of a text are bytes.
fn is_bytes(class: &Object) -> bool {
    text_of(class, "encoding").is_none_or(|encoding| encoding == "utf-8")
}

#[cfg(test)]
mod tests;
