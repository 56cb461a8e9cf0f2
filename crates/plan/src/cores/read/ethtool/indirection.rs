//! `ethtool -x`: the indirection table of receive-side scaling, with key and function of the hash.
//!
//! `struct ethtool_rxfh`, Linux `include/uapi/linux/ethtool.h`.

use serde::{Deserialize, Serialize};

use super::device;
use crate::cores::read::linux_lists::key_value;
use crate::cores::read::{TABLE_MAX, ends};
use crate::input::Damage;
use crate::input::lines::Lines;

/// Longest key that is read, in bytes; the kernel's drivers have 40 or 52.
const KEY_MAX: usize = 1024;

/// Receive-side scaling of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indirection {
    pub device: Option<String>,
    /// Receive rings that the driver has.
    pub rings: Option<u32>,
    /// The queue of each entry.
    pub table: Vec<u32>,
    pub key: Vec<u8>,
    /// `toeplitz`, `xor` or `crc32`.
    pub function: Option<String>,
}

pub(super) fn read(lines: &mut Lines<'_>) -> Result<Indirection, Damage> {
    let rings = lines.peek().and_then(rings);
    let mut indirection = Indirection { device: device(lines), rings, ..Indirection::default() };
    while let Some(line) = lines.peek() {
        let text = line.trim();
        if let Some((first, entries)) = row(text) {
            if usize::try_from(first).ok() != Some(indirection.table.len()) {
                return Err(Damage::new(
                    lines.number(),
                    format!(
                        "entry {first} of an indirection table after {} entries",
                        indirection.table.len()
                    ),
                ));
            }
            let space = TABLE_MAX - indirection.table.len();
            let numbers =
                entries.split_whitespace().map(str::parse::<u32>).take(space.saturating_add(1));
            let numbers: Vec<u32> = numbers.collect::<Result<_, _>>().map_err(|_| {
                Damage::new(
                    lines.number(),
                    "an entry of an indirection table is not the number of a queue",
                )
            })?;
            if numbers.len() > space {
                return Err(Damage::new(
                    lines.number(),
                    format!("an indirection table of more than {TABLE_MAX} entries"),
                ));
            }
            indirection.table.extend(numbers);
            lines.skip(1);
            continue;
        }
        if ends(lines) {
            break;
        }
        match key_value(text) {
            _ if text.is_empty() || text == "Operation not supported" => lines.skip(1),
            Some(("RSS hash key" | "RSS hash function", "")) => lines.skip(1),
            Some((name @ ("toeplitz" | "xor" | "crc32"), value @ ("on" | "off"))) => {
                if value == "on" {
                    indirection.function = Some(name.to_owned());
                }
                lines.skip(1);
            }
            Some(("RSS input transformation", _))
            | Some(("symmetric-xor" | "symmetric-or-xor", _)) => lines.skip(1),
            _ => match key(text) {
                Some(key) => {
                    indirection.key = key;
                    lines.skip(1);
                }
                None => lines.pass_unknown(),
            },
        }
    }
    Ok(indirection)
}

/// `... for eth0 with 4 RX ring(s):`
fn rings(heading: &str) -> Option<u32> {
    heading.split_once(" with ")?.1.split_whitespace().next()?.parse().ok()
}

/// `  8:      0     1     2 ...`
fn row(line: &str) -> Option<(u32, &str)> {
    let (first, entries) = line.split_once(':')?;
    let first = first.parse().ok()?;
    entries.starts_with([' ', '\t']).then_some((first, entries))
}

/// `6d:5a:56:da:...`
pub(super) fn key(text: &str) -> Option<Vec<u8>> {
    if text.len() < 5 || text.len() > KEY_MAX * 3 {
        return None;
    }
    text.split(':')
        .map(|byte| if byte.len() == 2 { u8::from_str_radix(byte, 16).ok() } else { None })
        .collect()
}
