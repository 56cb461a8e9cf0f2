//! Objects of PowerShell: each kind has a file that says from the properties whether an object is one.

use serde_json::Value as Json;

use super::{
    Piece, adapter, adapter_hardware, adapter_rss, ends, multichannel, network_interface, power,
    processors, server_process,
};
use crate::input::Damage;
use crate::input::lines::Lines;
use crate::input::powershell::{
    Object, Table, clixml, is_clixml, list_line, read_json, read_list, walk,
};

/// Failures of the Windows script.
const FAILURES_MAX: usize = 100;
const NOT_NEEDED: &str = "an object that is not one of a network adapter or an SMB connection";

/// Properties that come first in a list; a single line with another one may be anything.
const FIRST_PROPERTIES: [&str; 10] = [
    "Name",
    "FriendlyName",
    "ServerName",
    "ScopeName",
    "InterfaceAlias",
    "ifAlias",
    "InterfaceDescription",
    "Caption",
    "InterfaceIndex",
    "SmbInstance",
];

/// An object's speed: a number of bits per second, or `32 Gbps`.
pub(super) fn bits_per_second(object: &Object, names: &[&str]) -> Option<u64> {
    object.number64(names).or_else(|| speed(&object.text(names)?))
}

/// `0:34`
pub(super) fn processor(text: &str) -> Option<(u32, u32)> {
    let (group, number) = text.split_once(':')?;
    Some((group.parse().ok()?, number.parse().ok()?))
}

pub(super) fn list_starts(lines: &Lines<'_>) -> bool {
    let line = |ahead| lines.ahead(ahead).and_then(list_line);
    let is_first = |name: &str| FIRST_PROPERTIES.iter().any(|one| one.eq_ignore_ascii_case(name));
    line(0).is_some_and(|(name, _)| is_first(name) || line(1).is_some())
}

pub(super) fn list(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let first = lines.number();
    // Wrapped values are lists of processors.
    let object = read_list(lines, " ")?;
    match piece(&object) {
        Some(piece) => pieces.push(piece.map_err(|message| Damage::new(first, message))?),
        None => lines.unknown.note("", first as u64, "", NOT_NEEDED),
    }
    Ok(())
}

pub(super) fn table_starts(lines: &Lines<'_>) -> bool {
    lines.peek().is_some_and(|line| line.starts_with(|letter: char| letter.is_ascii_alphabetic()))
        && Table::find(lines).is_some()
}

pub(super) fn table(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let Some((table, heading_lines)) = Table::find(lines) else { return Ok(()) };
    lines.skip(heading_lines);
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty() && !ends(lines)) {
        let number = lines.number();
        match piece(&table.row(line, number)) {
            Some(piece) => {
                pieces.push(piece.map_err(|message| Damage::new(number, message))?);
                lines.skip(1);
            }
            None => lines.pass_unknown(),
        }
    }
    Ok(())
}

pub(super) fn json(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let first = lines.number();
    for value in read_json(lines)? {
        members(&value, first, lines, pieces)?;
    }
    Ok(())
}

/// Whether the rest of the text is CliXML.
pub(super) fn clixml_starts(lines: &Lines<'_>) -> bool {
    lines.peek().is_some_and(|line| line.trim_start().starts_with('<')) && is_clixml(lines.rest())
}

/// Reads the rest of the text as CliXML.
pub(super) fn xml(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let first = lines.number();
    let value = clixml(lines.rest())
        .map_err(|damage| Damage::new(first + damage.line - 1, damage.message))?;
    lines.skip(usize::MAX);
    members(&value, first, lines, pieces)
}

/// The pieces in an object, an array of objects, and below a heading of any name (as the Windows script writes them).
fn members(
    value: &Json,
    line: usize,
    lines: &mut Lines<'_>,
    pieces: &mut Vec<Piece>,
) -> Result<(), Damage> {
    let before = pieces.len();
    walk(value, &mut |_, value| {
        if let Some(piece) = Object::from_json(value).and_then(|object| piece(&object)) {
            pieces.push(piece.map_err(|message| Damage::new(line, message))?);
            return Ok(true);
        }
        // The Windows script writes what it could not read.
        if let Some(Json::Array(failures)) = value.get("Failures") {
            let messages = failures.iter().take(FAILURES_MAX).filter_map(Json::as_str);
            pieces.extend(
                messages.map(|message| Piece::Failure(message.chars().take(500).collect())),
            );
        }
        Ok(false)
    })?;
    if pieces.len() == before {
        lines.unknown.note("", line as u64, "", NOT_NEEDED);
    }
    Ok(())
}

/// The piece that an object is; `None` if it is not one that a plan needs.
fn piece(object: &Object) -> Option<Result<Piece, String>> {
    Some(if let Some(rss) = adapter_rss::read(object) {
        rss.map(Piece::AdapterRss)
    } else if let Some(hardware) = adapter_hardware::read(object) {
        Ok(Piece::AdapterHardware(hardware))
    } else if let Some(connection) = multichannel::read(object) {
        Ok(Piece::MultichannelConnection(connection))
    } else if let Some(interface) = network_interface::read_server(object) {
        Ok(Piece::ServerInterface(interface))
    } else if let Some(interface) = network_interface::read_client(object) {
        Ok(Piece::ClientInterface(interface))
    } else if let Some(property) = adapter::read_property(object) {
        Ok(Piece::AdvancedProperty(property))
    } else if let Some(adapter) = adapter::read(object) {
        Ok(Piece::Adapter(adapter))
    } else if let Some(process) = server_process::read(object) {
        Ok(Piece::ServerProcess(process))
    } else if let Some(plan) = power::read_plan(object) {
        Ok(Piece::Power(plan))
    } else if let Some(processors) = processors::read(object) {
        processors.map(Piece::Processors)
    } else {
        return None;
    })
}

fn speed(text: &str) -> Option<u64> {
    let text = text.trim();
    let split =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',')?;
    let (number, unit) = text.split_at_checked(split)?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "bps" => 1,
        "kbps" => 1_000,
        "mbps" => 1_000_000,
        "gbps" => 1_000_000_000,
        "tbps" => 1_000_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.split_once(['.', ',']).unwrap_or((number, ""));
    let mut bits = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let mut digit_value = factor;
    for digit in part.chars().take(12) {
        digit_value /= 10;
        bits = bits.checked_add(u64::from(digit.to_digit(10)?).checked_mul(digit_value)?)?;
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_in_each_unit() {
        assert_eq!(speed("32 Gbps"), Some(32_000_000_000));
        assert_eq!(speed("3  Gbps"), Some(3_000_000_000));
        assert_eq!(speed("0  bps"), Some(0));
        assert_eq!(speed("2.5 Gbps"), Some(2_500_000_000));
        assert_eq!(speed("fast"), None);
        assert_eq!(speed("99999999999999999999 Gbps"), None);
    }
}
