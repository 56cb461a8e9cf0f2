//! The metadata of a trace: TSDL (CTF 1.8.3, section 7), as far as LTTng and barectf write it.
//!
//! Not read: `typealias` within a structure, and pointers. What cannot be read ends the metadata; what
//! precedes it is kept.

mod field_type;

use foldhash::{HashMap, HashMapExt as _};

use super::lexer::{Lexer, Token};
use super::metadata::{Clock, EventClass, Metadata, StreamClass};
use super::types::TypeId;
use crate::bytes::Order;

/// Most entries of a block, fields of a structure, and names of an enumeration.
const FIELDS_MAX: usize = 4096;

/// Reads the text.
pub fn parse(text: &str) -> Metadata {
    let mut parser =
        Parser { lexer: Lexer::new(text), known: HashMap::new(), metadata: Metadata::default() };
    // Integers take the byte order of the trace, which can follow them.
    parser.metadata.order = order_of(text);
    while parser.lexer.peek().is_some() {
        if parser.declaration().is_none() {
            parser.metadata.damaged.push(format!("line {}", parser.lexer.line));
            break;
        }
    }
    parser.metadata
}

/// `byte_order = be` in the block `trace`.
fn order_of(text: &str) -> Order {
    let mut lexer = Lexer::new(text);
    let mut is_trace = false;
    while let Some(token) = lexer.next() {
        match token {
            Token::Name("trace") => is_trace = lexer.peek() == Some(Token::Sign("{")),
            Token::Name("byte_order") if is_trace => {
                let is_assigned = lexer.next() == Some(Token::Sign("="));
                let order = lexer.next().filter(|_| is_assigned);
                return match order {
                    Some(Token::Name("be" | "network")) => Order::Big,
                    _ => Order::Little,
                };
            }
            _ => {}
        }
    }
    Order::Little
}

/// A value in a block.
enum Value {
    Number(i128),
    Text(String),
    Type(TypeId),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Types with a name: `uint8_t`, `unsigned long`, `struct packet_context`.
    known: HashMap<String, TypeId>,
    metadata: Metadata,
}

impl<'a> Parser<'a> {
    fn accept(&mut self, sign: &str) -> bool {
        let is_next = self.lexer.peek() == Some(Token::Sign(sign));
        if is_next {
            self.lexer.next();
        }
        is_next
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        self.accept(sign).then_some(())
    }

    fn name(&mut self) -> Option<&'a str> {
        match self.lexer.next()? {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    fn peek_name(&self) -> Option<&'a str> {
        match self.lexer.peek()? {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    fn accept_name(&mut self, name: &str) -> bool {
        let is_next = self.peek_name() == Some(name);
        if is_next {
            self.lexer.next();
        }
        is_next
    }

    fn declaration(&mut self) -> Option<()> {
        match self.peek_name()? {
            "typealias" => {
                self.lexer.next();
                let aliased = self.read_type()?;
                self.expect(":=")?;
                let mut words = vec![self.name()?];
                while let Some(word) = self.peek_name() {
                    self.lexer.next();
                    words.push(word);
                }
                self.known.insert(words.join(" "), aliased);
            }
            "typedef" => {
                self.lexer.next();
                let aliased = self.read_type()?;
                let name = self.name()?.to_owned();
                let aliased = self.lengths(aliased)?;
                self.known.insert(name, aliased);
            }
            "struct" | "variant" | "enum" => drop(self.read_type()?),
            block @ ("trace" | "stream" | "event" | "clock" | "env" | "callsite") => {
                self.lexer.next();
                let entries = self.block()?;
                self.take_block(block, entries);
            }
            _ => return None,
        }
        self.expect(";")
    }

    /// `{ KEY = VALUE; }`
    fn attributes(&mut self) -> Option<HashMap<String, Value>> {
        self.entries(|_| None)
    }

    /// `{ KEY = VALUE; KEY := TYPE; }`
    fn block(&mut self) -> Option<HashMap<String, Value>> {
        self.entries(Parser::read_type)
    }

    fn entries(
        &mut self,
        read_type: fn(&mut Parser<'a>) -> Option<TypeId>,
    ) -> Option<HashMap<String, Value>> {
        self.expect("{")?;
        let mut entries = HashMap::new();
        while !self.accept("}") {
            let mut key = self.name()?.to_owned();
            while self.accept(".") {
                key.push('.');
                key.push_str(self.name()?);
            }
            let value = if self.accept(":=") {
                Value::Type(read_type(self)?)
            } else {
                self.expect("=")?;
                self.value()?
            };
            self.expect(";")?;
            if entries.len() < FIELDS_MAX {
                entries.insert(key, value);
            }
        }
        Some(entries)
    }

    fn value(&mut self) -> Option<Value> {
        let is_negative = self.accept("-");
        match self.lexer.next()? {
            Token::Number(number) => {
                Some(Value::Number(if is_negative { -number } else { number }))
            }
            Token::Text(text) => Some(Value::Text(text.to_owned())),
            Token::Name(name) => {
                let mut text = name.to_owned();
                while self.accept(".") {
                    text.push('.');
                    text.push_str(self.name()?);
                }
                Some(Value::Text(text))
            }
            Token::Sign(_) => None,
        }
    }

    fn take_block(&mut self, block: &str, mut entries: HashMap<String, Value>) {
        let metadata = &mut self.metadata;
        let number = |key: &str| match entries.get(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        };
        let type_of = |key: &str| match entries.get(key) {
            Some(Value::Type(id)) => Some(*id),
            _ => None,
        };
        let id = |key: &str| number(key).and_then(|id| u64::try_from(id).ok()).unwrap_or(0);
        match block {
            "trace" => metadata.packet_header = type_of("packet.header"),
            "stream" => {
                let class = StreamClass {
                    packet_context: type_of("packet.context"),
                    event_header: type_of("event.header"),
                    event_context: type_of("event.context"),
                };
                metadata.streams.insert(id("id"), class);
            }
            "event" => {
                let place = (id("stream_id"), id("id"));
                let (context, fields) = (type_of("context"), type_of("fields"));
                let name = match entries.remove("name") {
                    Some(Value::Text(name)) => name,
                    _ => String::new(),
                };
                metadata.events.insert(place, EventClass { name, context, fields });
            }
            "env" => {
                if let Some(Value::Text(release)) = entries.get("kernel_release") {
                    metadata.set_kernel(release);
                }
            }
            "clock" if metadata.clock.is_none() => {
                let frequency = number("freq").filter(|&freq| freq > 0).unwrap_or(1_000_000_000);
                let (offset, offset_seconds) = (number("offset"), number("offset_s"));
                let name = match entries.remove("name") {
                    Some(Value::Text(name)) => name,
                    _ => String::new(),
                };
                metadata.clock = Some(Clock {
                    name,
                    frequency,
                    offset: offset.unwrap_or(0),
                    offset_seconds: offset_seconds.unwrap_or(0),
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
