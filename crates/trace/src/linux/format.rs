//! Layout of a tracepoint's record: the text of `events/*/format` in tracefs, and fields by that.
//!
//! `kernel/trace/trace_events.c` (`f_show`) writes the text; Documentation/trace/events.rst.

use std::borrow::Cow;

use super::{Fields, task_state};
use crate::bytes::{Order, until_zero};

/// Most fields of an event; the kernel's have fewer than 70.
const FIELDS_MAX: usize = 256;
/// Most flags of a field with names.
const FLAGS_MAX: usize = 64;

/// How the bytes of a field are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Number,
    /// An array of characters.
    Text,
    /// Offset and length of the text in the record.
    Elsewhere,
    /// The same, the offset counting from the end of this field.
    Behind,
    Other,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub offset: usize,
    pub size: usize,
    form: Form,
}

/// Layout of the records of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    pub name: String,
    /// Number by which records name their event.
    pub id: u16,
    pub fields: Vec<Field>,
    /// A field whose bits have names, and these names.
    flags: Option<(String, Vec<(u64, String)>)>,
}

impl Format {
    /// Reads the text; `None` without a name and a number.
    pub fn parse(text: &str) -> Option<Format> {
        let mut format = Format::default();
        let mut id = None;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                name.trim().clone_into(&mut format.name);
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.flags = flags(print);
            }
        }
        format.id = id?;
        format.fields = fields(text);
        Some(format).filter(|format| !format.name.is_empty())
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Fields of a text that has only fields, as `events/header_page` has.
pub fn fields(text: &str) -> Vec<Field> {
    text.lines().filter_map(field).take(FIELDS_MAX).collect()
}

/// `field:unsigned short common_type; offset:0; size:2; signed:0;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let declaration = parts.next()?.trim();
    let mut number = |name: &str| {
        let (key, value) = parts.next()?.trim().split_once(':')?;
        value.parse::<usize>().ok().filter(|_| key == name)
    };
    let (offset, size) = (number("offset")?, number("size")?);
    let last = declaration.rsplit(char::is_whitespace).next()?;
    let name = last.split('[').next().unwrap_or(last).trim_start_matches('*').to_owned();
    let is_array = declaration.contains('[');
    let form = if declaration.starts_with("__data_loc ") {
        Form::Elsewhere
    } else if declaration.starts_with("__rel_loc ") {
        Form::Behind
    } else if is_array && declaration.contains("char") {
        Form::Text
    } else if !is_array && matches!(size, 1 | 2 | 4 | 8) {
        Form::Number
    } else {
        Form::Other
    };
    Some(Field { name, offset, size, form })
}

/// The names in `__print_flags(REC->prev_state & ..., "|", { 0x1, "S" }, { 0x2, "D" })`.
fn flags(print: &str) -> Option<(String, Vec<(u64, String)>)> {
    let (_, arguments) = print.split_once("__print_flags(REC->")?;
    let end = arguments.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, rest) = arguments.split_at_checked(end)?;
    let mut pairs = Vec::new();
    let (_, mut rest) = rest.split_once('{')?;
    while pairs.len() < FLAGS_MAX {
        let (pair, after) = rest.split_once('}')?;
        let (bit, text) = pair.split_once(',')?;
        let bit = bit.trim();
        let bit = match bit.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => bit.parse(),
        };
        if let Ok(bit) = bit {
            pairs.push((bit, text.trim().trim_matches('"').to_owned()));
        }
        let next = after.trim_start_matches([' ', ',']).strip_prefix('{');
        let Some(next) = next else { break };
        rest = next;
    }
    Some((name.to_owned(), pairs))
}

/// A record with its layout.
pub struct Record<'a> {
    pub format: &'a Format,
    pub bytes: &'a [u8],
    pub order: Order,
}

impl Record<'_> {
    fn of(&self, field: &Field) -> Option<&[u8]> {
        self.bytes.get(field.offset..field.offset.checked_add(field.size)?)
    }
}

impl Fields for Record<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        let field = self.format.field(name).filter(|field| field.form == Form::Number)?;
        self.order.number(self.of(field)?)
    }

    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let field = self.format.field(name)?;
        let bytes = match field.form {
            Form::Text => self.of(field)?,
            Form::Elsewhere | Form::Behind => {
                let place = self.order.u32(self.bytes, field.offset)?;
                let (mut start, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
                if field.form == Form::Behind {
                    start += field.offset.checked_add(field.size)?;
                }
                self.bytes.get(start..start.checked_add(length)?)?
            }
            Form::Number => {
                let (_, flags) = self.format.flags.as_ref().filter(|flags| flags.0 == name)?;
                return Some(Cow::Owned(task_state(self.number(name)?, flags)));
            }
            Form::Other => return None,
        };
        Some(String::from_utf8_lossy(until_zero(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "\
name: sched_switch
ID: 316
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:__data_loc char[] name;	offset:40;	size:4;	signed:0;
	field:__rel_loc char[] other;	offset:44;	size:4;	signed:0;
	field:const char * reason;	offset:48;	size:8;	signed:0;

print fmt: \"%s\", (REC->prev_state & 3) ? __print_flags(REC->prev_state & 3, \"|\", { 0x00000001, \"S\" }, { 2, \"D\" } , { x, \"?\" }) : \"R\", { 9, \"no\" }
";

    #[test]
    fn fields_are_read_where_the_text_says() {
        let format = Format::parse(SWITCH).unwrap();
        assert_eq!(
            (format.name.as_str(), format.id, format.fields.len()),
            ("sched_switch", 316, 8)
        );
        let mut bytes = vec![0; 56];
        bytes[8..12].copy_from_slice(b"init");
        bytes[24] = 7;
        bytes[32] = 1;
        bytes[40..44].copy_from_slice(&[56, 0, 5, 0]);
        bytes[44..48].copy_from_slice(&[9, 0, 2, 0]);
        bytes.extend_from_slice(b"eth0\0xy");
        let record = Record { format: &format, bytes: &bytes, order: Order::Little };
        assert_eq!(record.text("prev_comm").as_deref(), Some("init"));
        assert_eq!(record.number("prev_pid"), Some(7));
        assert_eq!(record.text("prev_state").as_deref(), Some("S"));
        assert_eq!(record.text("name").as_deref(), Some("eth0"));
        // 48 + 9 = 57.
        assert_eq!(record.text("other").as_deref(), Some("th"));
        assert_eq!(record.text("prev_pid"), None);
        assert_eq!(record.number("prev_comm"), None);
        assert_eq!(record.number("missing"), None);
        let cut = Record { bytes: &bytes[..58], ..record };
        assert_eq!(cut.text("name"), None);
        assert_eq!(Record { bytes: &bytes[..30], ..cut }.number("prev_state"), None);
    }

    #[test]
    fn other_texts_have_no_layout() {
        assert_eq!(Format::parse("name: x\nformat:\n"), None);
        assert_eq!(Format::parse("ID: 3\n"), None);
        assert_eq!(Format::parse("name: x\nID: 99999999\n"), None);
        let odd = "name: x\nID: 3\n\tfield:int a;\toffset:-1;\tsize:4;\n\tfield:int b;\tsize:4;\n\
                   \tfield:u64 c;\toffset:18446744073709551615;\tsize:8;\nprint fmt: __print_flags(REC->a";
        let format = Format::parse(odd).unwrap();
        assert_eq!(format.fields.len(), 1);
        let record = Record { format: &format, bytes: &[0; 16], order: Order::Big };
        assert_eq!(record.number("c"), None);
    }
}
