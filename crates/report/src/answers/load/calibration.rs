//! A calibration as text: what signing and encryption cost both sides, and the time of whole operations.

use smbscope_analysis::predict::crypto::{Calibration, Costs, Measured, Side};

use crate::render::table::{Column, lines};

/// The blocks that are shown; the cost per byte may be different for longer ones.
const BLOCKS: [(&str, u64); 2] = [("64 KiB", 65_536), ("1 MiB", 1 << 20)];

/// The costs, and the measurements that they come from, plain messages first. `bold` are the texts that start and end
/// bold text.
pub fn calibration_text(
    calibration: &Calibration,
    measured: &[Measured],
    bold: (&str, &str),
) -> String {
    let titles = ["us/message", "ns/byte in", "GB/s", "ns/byte out", "GB/s"];
    let mut text = format!(
        "{}Additional time compared with plain messages{}\n{}; {}, {}\n",
        bold.0, bold.1, calibration.machine, calibration.server, calibration.client
    );
    type Of = fn(&Costs) -> &Side;
    let sides: [(&str, Of); 2] = [("server", |one| &one.server), ("client", |one| &one.client)];
    for (name, side) in sides {
        let rows: Vec<_> = calibration
            .costs
            .iter()
            .map(|one| {
                let Side { inbound, outbound } = side(one);
                let message = (inbound.message_ns + outbound.message_ns) / 2e3;
                let mut cells = vec![one.protection.clone(), format!("{message:.2}")];
                for cost in [inbound, outbound] {
                    cells.push(format!("{:.3}", cost.byte_ns));
                    cells.push(if cost.byte_ns > 0.0 {
                        format!("{:.2}", 1.0 / cost.byte_ns)
                    } else {
                        String::new()
                    });
                }
                cells
            })
            .collect();
        let columns = Column::numbers_of(name, &titles);
        text.push_str(&format!("\n{}", lines(&columns, &rows, bold, None)));
    }
    for (block, bytes) in BLOCKS {
        let blocks: Vec<_> = measured.iter().map(|one| Times::from_bytes(bytes, one)).collect();
        text.push_str(&format!(
            "\n{}One operation of {block}, in total{}\n{}",
            bold.0,
            bold.1,
            blocks_table(&blocks, bold)
        ));
    }
    text
}

/// Time to read and to write a block: the operation's, and the client's before and after it, ns.
struct Times {
    name: &'static str,
    read: Option<(f64, f64)>,
    write: Option<(f64, f64)>,
}

impl Times {
    fn from_bytes(bytes: u64, measured: &Measured) -> Times {
        // Without its data, a message is shorter than the smallest block.
        let find = |of: fn(&(u64, u64)) -> u64| {
            let is = |message: u64| (bytes..bytes + BLOCKS[0].1).contains(&message);
            measured.samples.iter().find(|one| is(of(&one.bytes))).map(|one| one.ns)
        };
        let name = measured.protection.name();
        Times { name, read: find(|bytes| bytes.1), write: find(|bytes| bytes.0) }
    }
}

fn blocks_table(blocks: &[Times], bold: (&str, &str)) -> String {
    type Kind = fn(&Times) -> Option<(f64, f64)>;
    let kinds: [Kind; 2] = [|one| one.read, |one| one.write];
    let us = |ns: f64| format!("{:.1}", ns / 1e3);
    let plain = blocks.first();
    let row = |place: usize, one: &Times| {
        let mut cells = vec![one.name.to_owned()];
        for kind in kinds {
            let (now, off) = (kind(one), plain.and_then(kind));
            cells.push(now.map_or(String::new(), |ns| us(ns.0)));
            cells.push(match (now, off) {
                (Some(now), Some(off)) if off.0 > 0.0 && place > 0 => {
                    format!("{:+.0}", 100.0 * (now.0 / off.0 - 1.0))
                }
                _ => String::new(),
            });
            // A plain message costs the client nearly nothing, so a percentage would say little.
            cells.push(now.map_or(String::new(), |ns| us(ns.1)));
        }
        cells
    };
    let rows: Vec<_> = blocks.iter().enumerate().map(|(place, one)| row(place, one)).collect();
    let titles = ["read, server us", "%", "client us", "write, server us", "%", "client us"];
    lines(&Column::numbers_of("protection", &titles), &rows, bold, None)
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::predict::crypto::{Sample, fit};
    use smbscope_tables::protection::Protection;

    use super::*;

    /// A read and a write of 64 KiB that take this long at the server, ns.
    fn measured(protection: Protection, ns: f64) -> Measured {
        let sample = |bytes| Sample { bytes, ns: (ns, 1_000.0) };
        let samples = vec![sample((112, 112)), sample((112, 65_648)), sample((65_648, 112))];
        Measured { protection, samples }
    }

    #[test]
    fn costs_and_whole_operations_are_shown_and_plain_messages_have_no_percentage() {
        let all =
            [measured(Protection::ALL[0], 100_000.0), measured(Protection::ALL[1], 150_000.0)];
        let calibration = Calibration {
            machine: "a CPU".to_owned(),
            server: "Samba 4".to_owned(),
            client: "smbscope".to_owned(),
            measured_at: String::new(),
            plain: None,
            costs: vec![fit(all[1].protection, &all[1].samples, &all[0].samples)],
        };
        let text = calibration_text(&calibration, &all, ("", ""));
        assert!(text.contains("a CPU; Samba 4, smbscope"), "{text}");
        assert!(text.contains("One operation of 64 KiB"), "{text}");
        let (plain, other) = (Protection::ALL[0].name(), Protection::ALL[1].name());
        let rows: Vec<&str> = text.lines().collect();
        let row =
            |name: &str| rows.iter().rfind(|row| row.starts_with(name) && row.contains("100.0"));
        assert!(row(plain).is_some_and(|row| !row.contains('+')), "{text}");
        assert_eq!(text.matches("+50").count(), 2, "{other}: {text}");
        // The block of 1 MiB was not measured: its cells are empty.
        assert!(text.trim_end().ends_with(other), "{text}");
    }
}
