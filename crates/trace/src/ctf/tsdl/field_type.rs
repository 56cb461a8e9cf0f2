//! Types of fields (CTF 1.8.3, section 4 and appendix C).

use super::super::lexer::Token;
use super::super::types::{ALIGN_BITS_MAX, Integer, Length, NameId, Type, TypeId};
use super::{FIELDS_MAX, Parser, Value};
use crate::bytes::Order;

/// Most structures within structures.
const DEPTH_MAX: usize = 32;
/// Most words of a type's name: `unsigned long long int` has four.
const WORDS_MAX: usize = 8;

/// A structure or variant whose fields follow.
struct Open {
    name: Option<String>,
    /// The field that chooses, of a variant.
    tag: Option<NameId>,
    is_variant: bool,
    fields: Vec<(NameId, TypeId)>,
}

enum Begun {
    Whole(TypeId),
    Open(Open),
}

impl<'a> Parser<'a> {
    /// A type. Structures within structures are kept in a list, not on the stack of calls.
    pub fn read_type(&mut self) -> Option<TypeId> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let is_closed = !open.is_empty() && self.accept("}");
            let whole = match (is_closed, is_closed.then(|| open.pop()).flatten()) {
                (true, closed) => self.close(closed?)?,
                (false, _) => match self.begin()? {
                    Begun::Whole(id) => id,
                    Begun::Open(_) if open.len() >= DEPTH_MAX => return None,
                    Begun::Open(one) => {
                        open.push(one);
                        continue;
                    }
                },
            };
            let Some(parent) = open.last_mut() else { return Some(whole) };
            if parent.fields.len() >= FIELDS_MAX {
                return None;
            }
            let name = self.name()?;
            let name = self.metadata.types.intern(name);
            let field = self.lengths(whole)?;
            self.expect(";")?;
            open.last_mut()?.fields.push((name, field));
        }
    }

    /// `[16]`, `[ length ]`
    pub fn lengths(&mut self, mut element: TypeId) -> Option<TypeId> {
        while self.accept("[") {
            let length = match self.lexer.next()? {
                Token::Number(length) => Length::Fixed(u64::try_from(length).ok()?),
                Token::Name(name) => Length::Field(self.last_of(name)?),
                _ => return None,
            };
            self.expect("]")?;
            element = self.metadata.types.add(Type::Array { element, length, align_bits: 1 })?;
        }
        Some(element)
    }

    /// The last part of `stream.event.header.id`, where it begins with `first`.
    fn last_of(&mut self, first: &'a str) -> Option<NameId> {
        let mut last = first;
        while self.accept(".") {
            last = self.name()?;
        }
        Some(self.metadata.types.intern(last))
    }

    fn begin(&mut self) -> Option<Begun> {
        let whole = match self.peek_name()? {
            "struct" | "variant" => return self.begin_fields(),
            "integer" | "enum" => self.enumeration()?,
            "floating_point" => {
                self.lexer.next();
                let entries = self.attributes()?;
                let number = |key: &str| match entries.get(key) {
                    Some(Value::Number(number)) => u32::try_from(*number).ok(),
                    _ => None,
                };
                let bits = number("exp_dig")?.checked_add(number("mant_dig")?)?;
                let align_bits = alignment(number("align").unwrap_or(1))?;
                self.metadata.types.add(Type::Float { bits, align_bits })?
            }
            "string" => {
                self.lexer.next();
                if self.lexer.peek() == Some(Token::Sign("{")) {
                    self.attributes()?;
                }
                self.metadata.types.add(Type::Text)?
            }
            _ => self.alias()?,
        };
        Some(Begun::Whole(whole))
    }

    /// A name that a `typealias` gave: as many words as belong to it.
    fn alias(&mut self) -> Option<TypeId> {
        let mut words = self.name()?.to_owned();
        for _ in 0..WORDS_MAX {
            let longer = self.peek_name().map(|next| format!("{words} {next}"));
            let is_known = self.known.contains_key(&words);
            match longer {
                Some(longer) if !is_known || self.known.contains_key(&longer) => {
                    words = longer;
                    self.lexer.next();
                }
                _ => break,
            }
        }
        self.known.get(&words).copied()
    }

    fn begin_fields(&mut self) -> Option<Begun> {
        let keyword = self.name()?;
        let is_variant = keyword == "variant";
        let name = self.peek_name().map(|name| format!("{keyword} {name}"));
        if name.is_some() {
            self.lexer.next();
        }
        let mut tag = None;
        if is_variant && self.accept("<") {
            let first = self.name()?;
            tag = Some(self.last_of(first)?);
            self.expect(">")?;
        }
        if self.accept("{") {
            return Some(Begun::Open(Open { name, tag, is_variant, fields: Vec::new() }));
        }
        let known = self.known.get(&name?).copied()?;
        match (self.metadata.types.get(known)?, tag) {
            (Type::Variant { fields, .. }, Some(tag)) => {
                let variant = Type::Variant { tag, fields: fields.clone() };
                self.metadata.types.add(variant).map(Begun::Whole)
            }
            _ => Some(Begun::Whole(known)),
        }
    }

    fn close(&mut self, closed: Open) -> Option<TypeId> {
        let one = if closed.is_variant {
            Type::Variant { tag: closed.tag.unwrap_or(NameId::MAX), fields: closed.fields }
        } else {
            let mut align_bits = 1;
            if self.accept_name("align") {
                self.expect("(")?;
                let Token::Number(number) = self.lexer.next()? else { return None };
                align_bits = alignment(u32::try_from(number).ok()?)?;
                self.expect(")")?;
            }
            Type::Struct { fields: closed.fields, align_bits }
        };
        let id = self.metadata.types.add(one)?;
        if let Some(name) = closed.name {
            self.known.insert(name, id);
        }
        Some(id)
    }

    /// An integer, or an enumeration of one.
    fn enumeration(&mut self) -> Option<TypeId> {
        if self.accept_name("integer") {
            let integer = self.integer()?;
            return self.metadata.types.add(Type::Integer(integer));
        }
        self.lexer.next();
        let name = self.peek_name().map(|name| format!("enum {name}"));
        if name.is_some() {
            self.lexer.next();
        }
        let mut integer = None;
        if self.accept(":") {
            integer = Some(if self.accept_name("integer") {
                self.integer()?
            } else {
                let alias = self.alias()?;
                match self.metadata.types.get(alias)? {
                    Type::Integer(integer) => *integer,
                    _ => return None,
                }
            });
        }
        if !self.accept("{") {
            return self.known.get(&name?).copied();
        }
        let ranges = self.ranges()?;
        let id = self.metadata.types.add(Type::Enum(integer?, ranges))?;
        if let Some(name) = name {
            self.known.insert(name, id);
        }
        Some(id)
    }

    /// `compact = 0 ... 30, extended = 31 }`
    fn ranges(&mut self) -> Option<Vec<(NameId, i128, i128)>> {
        let (mut ranges, mut next) = (Vec::new(), 0);
        while !self.accept("}") {
            let (Token::Name(label) | Token::Text(label)) = self.lexer.next()? else { return None };
            let label = self.metadata.types.intern(label);
            let mut last = next;
            if self.accept("=") {
                let Value::Number(first) = self.value()? else { return None };
                (next, last) = (first, first);
                if self.accept("...") {
                    let Value::Number(number) = self.value()? else { return None };
                    last = number;
                }
            }
            if ranges.len() >= FIELDS_MAX {
                return None;
            }
            ranges.push((label, next, last));
            next = last.checked_add(1)?;
            self.accept(",");
        }
        Some(ranges)
    }

    /// `{ size = 32; align = 8; signed = 1; encoding = none; base = 10; map = clock.c.value; }`
    fn integer(&mut self) -> Option<Integer> {
        let entries = self.attributes()?;
        let number = |key: &str| match entries.get(key) {
            Some(Value::Number(number)) => u32::try_from(*number).ok(),
            _ => None,
        };
        let text = |key: &str| match entries.get(key) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let bits = number("size").filter(|bits| (1..=64).contains(bits))?;
        let natural = if bits % 8 == 0 { 8 } else { 1 };
        Some(Integer {
            bits,
            align_bits: alignment(number("align").unwrap_or(natural))?,
            is_signed: number("signed") == Some(1) || text("signed") == Some("true"),
            order: match text("byte_order") {
                Some("le") => Order::Little,
                Some("be" | "network") => Order::Big,
                _ => self.metadata.order,
            },
            is_character: bits == 8
                && matches!(text("encoding"), Some("UTF8" | "utf8" | "ASCII" | "ascii")),
            is_clock: text("map").is_some(),
            alias: None,
        })
    }
}

fn alignment(bits: u32) -> Option<u32> {
    (bits.is_power_of_two() && bits <= ALIGN_BITS_MAX).then_some(bits)
}
