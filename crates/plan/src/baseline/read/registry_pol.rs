//! registry.pol: the registry part of a group policy (MS-GPREG 2.2.1, "Registry Policy File Format").
//!
//! `PReg`, version 1, then records `[key;value;type;size;data]` in UTF-16 with type and size as numbers of 32 bits.

use super::super::setting::Scope;
use super::registry_data::{decode_registry, instruction};
use super::sink::Sink;

const HEADER_BYTES: usize = 8;
/// Units of a key or a name: the registry allows 255 characters in a part of a key, 16383 in a name.
const NAME_UNITS_MAX: usize = 32_768;

pub(super) fn read(bytes: &[u8], scope: Scope, sink: &mut Sink<'_>) {
    let mut input = Input { bytes, at: HEADER_BYTES };
    match bytes.get(4..HEADER_BYTES) {
        Some([1, 0, 0, 0]) => {}
        Some(version) => {
            let version = version.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            return sink
                .damage(4, format!("version {version} of registry.pol is not known: expected 1"));
        }
        None => return sink.damage(bytes.len() as u64, "registry.pol ends within its header"),
    }
    while input.at < bytes.len() {
        let start = input.at as u64;
        if let Err((at, message)) = record(&mut input, scope, start, sink) {
            return sink.damage(at as u64, format!("{message} (in the record at {start})"));
        }
    }
}

type Fault = (usize, String);

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn unit(&mut self) -> Result<u16, Fault> {
        let unit = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<2>());
        let unit =
            unit.ok_or_else(|| (self.bytes.len(), "the file ends within a record".to_owned()))?;
        self.at += 2;
        Ok(u16::from_le_bytes(*unit))
    }

    fn expect(&mut self, letter: u8) -> Result<(), Fault> {
        let at = self.at;
        match self.unit()? {
            unit if unit == u16::from(letter) => Ok(()),
            unit => Err((at, format!("expected `{}`, found 0x{unit:04x}", char::from(letter)))),
        }
    }

    fn number(&mut self) -> Result<u32, Fault> {
        let low = self.unit()?;
        Ok(u32::from(self.unit()?) << 16 | u32::from(low))
    }

    /// A text up to its zero; an empty one may have none.
    fn text(&mut self) -> Result<Result<String, String>, Fault> {
        let start = self.at;
        let mut units = Vec::new();
        loop {
            match self.unit()? {
                0 => break,
                unit if unit == u16::from(b';') && units.is_empty() => {
                    self.at -= 2;
                    break;
                }
                unit => units.push(unit),
            }
            if units.len() > NAME_UNITS_MAX {
                return Err((start, format!("a name of more than {NAME_UNITS_MAX} characters")));
            }
        }
        Ok(String::from_utf16(&units).map_err(|_| String::from_utf16_lossy(&units)))
    }

    fn data(&mut self, size: u32) -> Result<&'a [u8], Fault> {
        let start = self.at;
        let end = start.checked_add(size as usize);
        let data = end.and_then(|end| self.bytes.get(start..end)).ok_or_else(|| {
            let left = self.bytes.len().saturating_sub(start);
            (start, format!("the data has {size} bytes, but only {left} are left"))
        })?;
        self.at = start + data.len();
        Ok(data)
    }
}

fn record(
    input: &mut Input<'_>,
    scope: Scope,
    start: u64,
    sink: &mut Sink<'_>,
) -> Result<(), Fault> {
    input.expect(b'[')?;
    let key = input.text()?;
    input.expect(b';')?;
    let name = input.text()?;
    input.expect(b';')?;
    let kind = input.number()?;
    input.expect(b';')?;
    let size = input.number()?;
    input.expect(b';')?;
    let data = input.data(size)?;
    input.expect(b']')?;
    match (key, name) {
        (Ok(key), Ok(name)) => match instruction(scope, &key, &name, decode_registry(kind, data)) {
            Some((place, value)) => sink.setting(start, place, value),
            None => {
                sink.unknown(start, &format!("{key}\\{name}"), "an instruction that is not known")
            }
        },
        (key, name) => {
            let shown = |text: Result<String, String>| text.unwrap_or_else(|lossy| lossy);
            let text = format!("{}\\{}", shown(key), shown(name));
            sink.unknown(start, &text, "a name that is not valid UTF-16");
        }
    }
    Ok(())
}
