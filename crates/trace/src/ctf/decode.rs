//! Values of a type in the bits of a packet (CTF 1.8.3, sections 4 and 6; CTF 2, section 6).

use std::borrow::Cow;
use std::ops::Range;

use super::types::{Integer, Length, NameId, Type, TypeId, Types};
use crate::bytes::{Order, until_zero};
use crate::linux::{Fields, TASK_STATES_BEFORE_4_14, task_state};

/// Most values that are read for one event.
const STEPS_MAX: usize = 1 << 16;
/// Most values of each kind that an event has.
const VALUES_MAX: usize = 16_384;

/// Values by the names of their fields.
#[derive(Clone, Debug, Default)]
pub struct Values {
    numbers: Vec<(NameId, u64)>,
    /// Where texts are in the bytes.
    texts: Vec<(NameId, Range<usize>)>,
    /// The names that the values of enumerations have.
    labels: Vec<(NameId, NameId)>,
}

impl Values {
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.texts.clear();
        self.labels.clear();
    }

    /// The last value of that name.
    pub fn number(&self, types: &Types, name: &str) -> Option<u64> {
        let mut values = self.numbers.iter().rev();
        values.find(|(id, _)| is_named(types.name(*id), name)).map(|&(_, value)| value)
    }

    /// The last value of a field.
    fn value(&self, name: NameId) -> Option<u64> {
        self.numbers.iter().rev().find(|(id, _)| *id == name).map(|&(_, value)| value)
    }

    fn keep(&mut self, name: NameId, value: u64) -> Option<()> {
        self.numbers.push((name, value));
        (self.numbers.len() <= VALUES_MAX).then_some(())
    }

    fn keep_text(&mut self, name: NameId, place: Range<usize>) -> Option<()> {
        self.texts.push((name, place));
        (self.texts.len() <= VALUES_MAX).then_some(())
    }

    fn keep_label(&mut self, name: NameId, label: NameId) -> Option<()> {
        self.labels.push((name, label));
        (self.labels.len() <= VALUES_MAX).then_some(())
    }
}

/// LTTng puts `_` before the names of fields.
fn is_named(field: &str, name: &str) -> bool {
    field.strip_prefix('_').unwrap_or(field) == name
}

/// Values with the bytes that they were read from.
pub struct Decoded<'a> {
    pub types: &'a Types,
    pub values: &'a Values,
    pub bytes: &'a [u8],
    /// States of tasks have the names that they had before Linux 4.14.
    pub is_before_4_14: bool,
}

impl Fields for Decoded<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        self.values.number(self.types, name)
    }

    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        if name == "prev_state" && self.is_before_4_14 {
            let bits = self.number(name)?;
            return Some(Cow::Owned(task_state(bits, &TASK_STATES_BEFORE_4_14)));
        }
        let mut texts = self.values.texts.iter().rev();
        let (_, place) = texts.find(|(id, _)| is_named(self.types.name(*id), name))?;
        Some(String::from_utf8_lossy(until_zero(self.bytes.get(place.clone())?)))
    }
}

/// A structure or array that is not read to its end.
enum Frame {
    Fields(TypeId, usize),
    Elements(TypeId, NameId, u64),
}

/// Reads bits.
pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    /// Place of the next bit, and of the end.
    pub at_bits: usize,
    pub end_bits: usize,
    /// The time so far, which integers of the clock continue.
    pub time: u64,
}

impl Cursor<'_> {
    fn align(&mut self, bits: u32) -> Option<()> {
        self.at_bits = self.at_bits.checked_next_multiple_of(bits.max(1) as usize)?;
        (self.at_bits <= self.end_bits).then_some(())
    }

    fn skip(&mut self, bits: u64) -> Option<()> {
        let end = self.at_bits.checked_add(usize::try_from(bits).ok()?)?;
        if end > self.end_bits {
            return None;
        }
        self.at_bits = end;
        Some(())
    }

    fn integer(&mut self, integer: Integer) -> Option<u64> {
        self.align(integer.align_bits)?;
        let start = self.at_bits;
        self.skip(u64::from(integer.bits))?;
        let bytes = self.bytes.get(start / 8..self.at_bits.div_ceil(8))?;
        let bits = integer.bits;
        if start.is_multiple_of(8) && bits.is_multiple_of(8) {
            return integer.order.number(bytes);
        }
        let fold = |whole: u128, &byte: &u8| whole << 8 | u128::from(byte);
        let (whole, shift) = match integer.order {
            Order::Little => (bytes.iter().rev().fold(0, fold), start % 8),
            Order::Big => (bytes.iter().fold(0, fold), (8 - self.at_bits % 8) % 8),
        };
        Some((whole >> shift & ((1 << bits) - 1)) as u64)
    }

    /// Reads a value of a type and adds what it has to the values; `None` if it is cut.
    pub fn read(&mut self, types: &Types, root: TypeId, values: &mut Values) -> Option<()> {
        let mut frames = Vec::new();
        self.begin(types, root, NameId::MAX, values, &mut frames)?;
        for _ in 0..STEPS_MAX {
            let (id, name) = match frames.last_mut() {
                None => return Some(()),
                Some(Frame::Fields(id, next)) => {
                    let Some(Type::Struct { fields, .. }) = types.get(*id) else { return None };
                    let Some(&(name, field)) = fields.get(*next) else {
                        frames.pop();
                        continue;
                    };
                    *next += 1;
                    (field, name)
                }
                Some(Frame::Elements(_, _, 0)) => {
                    frames.pop();
                    continue;
                }
                Some(Frame::Elements(element, name, left)) => {
                    *left -= 1;
                    (*element, *name)
                }
            };
            self.begin(types, id, name, values, &mut frames)?;
        }
        None
    }

    /// Reads a simple value, or begins a structure or array.
    fn begin(
        &mut self,
        types: &Types,
        id: TypeId,
        name: NameId,
        values: &mut Values,
        frames: &mut Vec<Frame>,
    ) -> Option<()> {
        let mut id = id;
        // The chosen field of a variant can be a variant; types contain earlier ones only.
        loop {
            match types.get(id)? {
                Type::Variant { tag, fields } => {
                    let label = values.labels.iter().rev().find(|(field, _)| field == tag)?.1;
                    id = fields.iter().find(|(field, _)| *field == label)?.1;
                }
                Type::Choice { selector, signed_bits, options, is_optional } => {
                    let value = values.value(*selector)?;
                    let value = signed_bits.map_or(value.into(), |bits| signed(value, bits));
                    let is_in = |&(first, last): &(i128, i128)| (first..=last).contains(&value);
                    let mut options = options.iter();
                    match options.find(|(ranges, _)| ranges.iter().any(is_in)) {
                        Some(&(_, chosen)) => id = chosen,
                        None => return is_optional.then_some(()),
                    }
                }
                _ => break,
            }
        }
        match types.get(id)? {
            Type::Integer(integer) => self.number(*integer, name, values).map(drop),
            Type::Variable(integer) => self.variable(*integer, name, values),
            Type::Enum(integer, ranges) => {
                let value = self.number(*integer, name, values)?;
                let value =
                    if integer.is_signed { signed(value, integer.bits) } else { i128::from(value) };
                let mut ranges = ranges.iter();
                let found = ranges.find(|&&(_, first, last)| (first..=last).contains(&value));
                match found {
                    Some(&(label, _, _)) => values.keep_label(name, label),
                    None => Some(()),
                }
            }
            Type::Float { bits, align_bits } => {
                self.align(*align_bits)?;
                self.skip(u64::from(*bits))
            }
            Type::Text => {
                self.align(8)?;
                let start = self.at_bits / 8;
                let bytes = self.bytes.get(start..self.end_bits / 8)?;
                let end = start + bytes.iter().position(|&byte| byte == 0)?;
                self.at_bits = 8 * (end + 1);
                values.keep_text(name, start..end)
            }
            Type::Struct { .. } => {
                self.align(types.align_bits(id))?;
                frames.push(Frame::Fields(id, 0));
                Some(())
            }
            Type::Array { element, length, .. } => {
                let length = match *length {
                    Length::Fixed(length) => length,
                    Length::Field(length) => values.value(length)?,
                };
                self.align(types.align_bits(id))?;
                self.elements(types, *element, name, length, values, frames)
            }
            Type::Variant { .. } | Type::Choice { .. } => None,
        }
    }

    fn number(&mut self, integer: Integer, name: NameId, values: &mut Values) -> Option<u64> {
        let value = self.integer(integer)?;
        self.keep(integer, name, value, values)?;
        Some(value)
    }

    /// An integer of seven bits in each byte, the lowest first.
    fn variable(&mut self, integer: Integer, name: NameId, values: &mut Values) -> Option<()> {
        self.align(8)?;
        let (mut value, mut bits) = (0_u64, 0);
        loop {
            let byte = *self.bytes.get(self.at_bits / 8)?;
            self.skip(8)?;
            value |= u64::from(byte & 0x7f).checked_shl(bits)?;
            bits += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        if integer.is_signed && bits < u64::BITS {
            value = signed(value, bits) as u64;
            bits = u64::BITS;
        }
        self.keep(Integer { bits, ..integer }, name, value, values)
    }

    fn keep(
        &mut self,
        integer: Integer,
        name: NameId,
        value: u64,
        values: &mut Values,
    ) -> Option<()> {
        if integer.is_clock {
            self.time = continued(self.time, value, integer.bits);
        }
        for name in integer.alias.into_iter().chain([name]) {
            values.keep(name, value)?;
        }
        Some(())
    }

    fn elements(
        &mut self,
        types: &Types,
        element: TypeId,
        name: NameId,
        length: u64,
        values: &mut Values,
        frames: &mut Vec<Frame>,
    ) -> Option<()> {
        match types.get(element)? {
            Type::Integer(integer) if integer.is_character => {
                let start = self.at_bits / 8;
                self.skip(length.checked_mul(8)?)?;
                values.keep_text(name, start..self.at_bits / 8)?;
            }
            // Numbers without gaps, which are not needed.
            Type::Integer(integer) if integer.bits % integer.align_bits == 0 => {
                self.skip(length.checked_mul(u64::from(integer.bits))?)?;
            }
            _ => frames.push(Frame::Elements(element, name, length)),
        }
        Some(())
    }
}

/// A number of that many bits as a signed one.
fn signed(value: u64, bits: u32) -> i128 {
    let unused = 64_u32.saturating_sub(bits);
    i128::from((value << unused) as i64 >> unused)
}

/// The time whose lower bits are the value: the next one after `time`.
fn continued(time: u64, value: u64, bits: u32) -> u64 {
    if bits >= 64 {
        return value;
    }
    let mask = (1_u64 << bits) - 1;
    let next = time & !mask | value;
    if next < time { next.wrapping_add(mask + 1) } else { next }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Metadata;
    use super::super::tsdl::parse;
    use super::*;

    fn read(text: &str, bytes: &[u8]) -> Option<(Metadata, Values, u64)> {
        let text = format!("{text} event {{ fields := struct s; }};");
        let metadata = parse(&text);
        assert_eq!(metadata.damaged, [""; 0]);
        let root = metadata.events[&(0, 0)].fields.unwrap();
        let end_bits = 8 * bytes.len();
        let mut cursor = Cursor { bytes, at_bits: 0, end_bits, time: 100 };
        let mut values = Values::default();
        cursor.read(&metadata.types, root, &mut values)?;
        Some((metadata, values, cursor.time))
    }

    const HEADER: &str = "struct s {
        enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
        variant <id> {
            struct { integer { size = 27; align = 1; map = clock.c.value; } t; } compact;
            struct { integer { size = 32; align = 8; } id; integer { size = 64; align = 8; map = c; } t; } extended;
        } v; } align(8);";

    #[test]
    fn headers_of_both_forms_are_read() {
        let compact = (7_u32 | 50 << 5).to_le_bytes();
        let (metadata, values, time) = read(HEADER, &compact).unwrap();
        // Fifty is before a hundred: the lower 27 bits began again.
        assert_eq!((values.number(&metadata.types, "id"), time), (Some(7), (1 << 27) + 50));
        let extended = [&[31, 9, 0, 0, 0][..], &500_u64.to_le_bytes()].concat();
        let (metadata, values, time) = read(HEADER, &extended).unwrap();
        assert_eq!((values.number(&metadata.types, "id"), time), (Some(9), 500));
        assert!(read(HEADER, &extended[..12]).is_none());
        let big = format!("trace {{ byte_order = be; }}; {HEADER}");
        let (metadata, values, time) = read(&big, &(7_u32 << 27 | 150).to_be_bytes()).unwrap();
        assert_eq!((values.number(&metadata.types, "id"), time), (Some(7), 150));
    }

    #[test]
    fn fields_of_each_kind_are_read() {
        let text = "struct s {
            integer { size = 8; } __n;
            integer { size = 16; align = 16; } many[ __n ];
            integer { size = 8; encoding = UTF8; } _comm[4];
            string _name;
            struct { integer { size = 4; align = 1; } a; } pairs[3];
            floating_point { exp_dig = 8; mant_dig = 24; align = 32; } f;
            integer { size = 8; } last; };";
        let bytes = b"\x02\0\x01\0\x02\0ab\0\0eth0\0\x21\x03\0\0\0\0\0\x09";
        let mut bytes = bytes.to_vec();
        // The floating point number is at the next multiple of four bytes.
        bytes.splice(15..23, [0x21, 0x03, 0, 0, 0, 0, 0, 0, 0, 9]);
        let (metadata, values, _) = read(text, &bytes).unwrap();
        let types = &metadata.types;
        let fields = Decoded { types, values: &values, bytes: &bytes, is_before_4_14: false };
        assert_eq!(fields.text("comm").as_deref(), Some("ab"));
        assert_eq!(fields.text("name").as_deref(), Some("eth0"));
        assert_eq!((fields.number("a"), fields.text("a")), (Some(3), None));
        assert_eq!(fields.number("last"), Some(9));
        assert!(read(text, &bytes[..bytes.len() - 1]).is_none());
        bytes[0] = 200;
        assert!(read(text, &bytes).is_none());
    }

    #[test]
    fn forged_lengths_end() {
        let text = "struct s { integer { size = 64; align = 8; } n; struct { } many[n]; };";
        assert!(read(text, &[0xff; 8]).is_none());
        let text =
            "struct s { integer { size = 64; align = 8; } n; integer { size = 8; } many[n]; };";
        assert!(read(text, &[0xff; 9]).is_none());
        let text = "struct s { variant <x> { string a; } v; };";
        assert!(read(text, &[0; 9]).is_none());
        assert_eq!(signed(0xff, 8), -1);
    }
}
