//! Types of CTF's fields (CTF 1.8.3, section 4; CTF 2, section 5.3), each with its alignment, by number.

use std::collections::HashMap;

use crate::bytes::Order;

/// Most types of a trace; LTTng's metadata has about 10,000.
const TYPES_MAX: usize = 1 << 18;
/// Largest alignment: a page.
pub const ALIGN_BITS_MAX: u32 = 4096 * 8;

/// Number of a type.
pub type TypeId = usize;
/// Number of a field's name.
pub type NameId = u32;

/// An integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    pub bits: u32,
    pub align_bits: u32,
    pub is_signed: bool,
    pub order: Order,
    /// An array of these is text.
    pub is_character: bool,
    /// It is a time of the clock, or the lower bits of one.
    pub is_clock: bool,
    /// A second name, by its role.
    pub alias: Option<NameId>,
}

/// How many elements an array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Fixed(u64),
    /// As many as a field says.
    Field(NameId),
}

/// Ranges of a number, both ends included.
pub type Ranges = Vec<(i128, i128)>;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Integer(Integer),
    /// An integer of as many bytes as it needs, seven bits in each (LEB128).
    Variable(Integer),
    /// An integer whose ranges have names.
    Enum(Integer, Vec<(NameId, i128, i128)>),
    Float {
        bits: u32,
        align_bits: u32,
    },
    Text,
    Struct {
        fields: Vec<(NameId, TypeId)>,
        align_bits: u32,
    },
    /// One of the fields, by the name of an enumeration's value.
    Variant {
        tag: NameId,
        fields: Vec<(NameId, TypeId)>,
    },
    /// The first of the fields in whose ranges the number of another field is.
    Choice {
        selector: NameId,
        /// Bits of that number, if it is signed.
        signed_bits: Option<u32>,
        options: Vec<(Ranges, TypeId)>,
        /// There can be none.
        is_optional: bool,
    },
    Array {
        element: TypeId,
        length: Length,
        align_bits: u32,
    },
}

/// All types, and the names of fields.
#[derive(Clone, Debug, Default)]
pub struct Types {
    all: Vec<(Type, u32)>,
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, NameId>,
}

impl Types {
    /// Adds a type whose parts are known; `None` if there are too many.
    pub fn add(&mut self, one: Type) -> Option<TypeId> {
        if self.all.len() >= TYPES_MAX {
            return None;
        }
        let align_bits = match &one {
            Type::Integer(integer) | Type::Variable(integer) | Type::Enum(integer, _) => {
                integer.align_bits
            }
            Type::Float { align_bits, .. } => *align_bits,
            Type::Text => 8,
            Type::Struct { fields, align_bits } => fields
                .iter()
                .fold(*align_bits, |align, &(_, field)| align.max(self.align_bits(field))),
            // Only its chosen field is aligned.
            Type::Variant { .. } | Type::Choice { .. } => 1,
            Type::Array { element, align_bits, .. } => self.align_bits(*element).max(*align_bits),
        };
        self.all.push((one, align_bits));
        Some(self.all.len() - 1)
    }

    pub fn get(&self, id: TypeId) -> Option<&Type> {
        self.all.get(id).map(|(one, _)| one)
    }

    pub fn align_bits(&self, id: TypeId) -> u32 {
        self.all.get(id).map_or(1, |&(_, align_bits)| align_bits)
    }

    /// The number of a name; names are never more than the words of the metadata.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let id = self.names.len() as NameId;
        self.names.push(name.into());
        self.by_name.insert(name.into(), id);
        id
    }

    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", |name| name)
    }
}
