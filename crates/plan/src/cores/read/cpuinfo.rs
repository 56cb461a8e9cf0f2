//! `/proc/cpuinfo`: CPUs with their sockets and cores, where the architecture writes them.
//!
//! `show_cpuinfo` of Linux (`arch/x86/kernel/cpu/proc.c`): `physical id` and `core id`, which is unique in its socket.

use super::lscpu::LscpuRow;
use super::{CPUS_MAX, Piece, command_line, ethtool};
use crate::input::Damage;
use crate::input::lines::Lines;

/// Cores of one socket that can be distinguished.
const CORES_OF_SOCKET: u32 = 1 << 16;

pub(super) fn starts(line: &str) -> bool {
    number(line, "processor").is_some()
}

pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let mut rows: Vec<LscpuRow> = Vec::new();
    // Entries are separated by empty lines; any line of one has a colon.
    while let Some(line) = lines.peek().filter(|line| is_entry(line)) {
        if let Some(cpu) = number(line, "processor") {
            if rows.len() >= CPUS_MAX {
                return Err(Damage::new(lines.number(), format!("more than {CPUS_MAX} CPUs")));
            }
            rows.push(LscpuRow { cpu, is_online: Some(true), ..LscpuRow::default() });
        } else if let Some(row) = rows.last_mut() {
            row.socket = number(line, "physical id").or(row.socket);
            let core = number(line, "core id").filter(|core| *core < CORES_OF_SOCKET);
            row.core = core.or(row.core);
        }
        lines.skip(1);
    }
    for row in &mut rows {
        let socket = row.socket.unwrap_or(0);
        row.core = row.core.and_then(|core| socket.checked_mul(CORES_OF_SOCKET)?.checked_add(core));
    }
    pieces.push(Piece::LscpuTable(rows));
    Ok(())
}

/// Whether a line belongs to an entry, not to the next output.
fn is_entry(line: &str) -> bool {
    (line.trim().is_empty() || line.contains(':'))
        && command_line(line).is_none()
        && ethtool::heading(line).is_none()
}

/// `processor\t: 3`
fn number(line: &str, name: &str) -> Option<u32> {
    let (key, value) = line.split_once(':')?;
    value.trim().parse().ok().filter(|_| key.trim() == name)
}

#[cfg(test)]
mod tests {
    use super::super::super::assemble::assemble;
    use super::super::read;

    #[test]
    fn threads_and_sockets_are_told_apart() {
        let cpu = |cpu: u32, socket: u32, core: u32| {
            format!(
                "processor\t: {cpu}\nvendor_id\t: GenuineIntel\nphysical id\t: {socket}\ncore id\t\t: {core}\nflags\t\t: fpu\n\n"
            )
        };
        let text = [cpu(0, 0, 0), cpu(1, 1, 0), cpu(2, 0, 0), cpu(3, 1, 0)].concat();
        let machine = assemble(&read(text.as_bytes()).unwrap().pieces);
        let cpus: Vec<_> =
            machine.cpus.iter().map(|cpu| (cpu.number, cpu.socket, cpu.node, cpu.thread)).collect();
        assert_eq!(cpus, [(0, 0, 0, 0), (1, 1, 1, 0), (2, 0, 0, 1), (3, 1, 1, 1)]);
        assert_eq!(machine.assumptions, ["Each socket is taken for a NUMA node"]);
    }
}
