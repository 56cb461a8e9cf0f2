//! `lscpu`: the summary, and the tables of `-p` and `-e`.
//!
//! `lscpu(1)` of util-linux 2.38. The summary does not say which CPUs share a core; the tables do.

use serde::{Deserialize, Serialize};

use super::linux_lists::{key_value, number_list};
use super::{CPUS_MAX, Piece, command_line, ends};
use crate::input::Damage;
use crate::input::lines::Lines;

/// Longest list of nodes.
const NODES_MAX: usize = 4096;

/// Summaries in one text: a short one may name many CPUs.
const SUMMARIES_MAX: usize = 16;

/// The summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lscpu {
    pub online: Vec<u32>,
    pub offline: Vec<u32>,
    pub threads_per_core: Option<u32>,
    pub cores_per_socket: Option<u32>,
    pub sockets: Option<u32>,
    /// Number of each node, with its CPUs.
    pub nodes: Vec<(u32, Vec<u32>)>,
    pub model: Option<String>,
    pub hypervisor: Option<String>,
}

/// A CPU of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LscpuRow {
    pub cpu: u32,
    pub node: Option<u32>,
    pub socket: Option<u32>,
    pub core: Option<u32>,
    pub is_online: Option<bool>,
}

pub(super) fn starts(line: &str) -> bool {
    line.starts_with("Architecture:")
}

pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let summaries = pieces.iter().filter(|piece| matches!(piece, Piece::Lscpu(_))).count();
    if summaries >= SUMMARIES_MAX {
        return Err(Damage::new(
            lines.number(),
            format!("more than {SUMMARIES_MAX} outputs of lscpu"),
        ));
    }
    let mut lscpu = Lscpu::default();
    lines.skip(1);
    while let Some(line) = lines.peek() {
        if starts(line) || ends(lines) {
            break;
        }
        match key_value(line) {
            _ if line.trim().is_empty() => lines.skip(1),
            // A long list of flags is wrapped.
            _ if line.starts_with("                    ") => lines.skip(1),
            Some((key, value)) => {
                set(&mut lscpu, key, value).ok_or_else(|| {
                    Damage::new(
                        lines.number(),
                        format!("`{key}` is not a number or a list of numbers"),
                    )
                })?;
                lines.skip(1);
            }
            None => lines.pass_unknown(),
        }
    }
    pieces.push(Piece::Lscpu(lscpu));
    Ok(())
}

fn set(lscpu: &mut Lscpu, key: &str, value: &str) -> Option<()> {
    match key {
        "On-line CPU(s) list" => lscpu.online = number_list(value, CPUS_MAX)?,
        "Off-line CPU(s) list" => lscpu.offline = number_list(value, CPUS_MAX)?,
        "Thread(s) per core" => lscpu.threads_per_core = Some(value.parse().ok()?),
        // `-` where the system does not say it.
        "Core(s) per socket" => lscpu.cores_per_socket = value.parse().ok(),
        "Socket(s)" => lscpu.sockets = value.parse().ok(),
        "Model name" => lscpu.model = Some(value.to_owned()),
        "Hypervisor vendor" => lscpu.hypervisor = Some(value.to_owned()),
        _ => {
            let node = key.strip_prefix("NUMA node").and_then(|rest| rest.strip_suffix(" CPU(s)"));
            if let Some(node) =
                node.and_then(|node| node.parse().ok()).filter(|_| lscpu.nodes.len() < NODES_MAX)
            {
                // A CPU is on one node.
                let members: usize = lscpu.nodes.iter().map(|(_, cpus)| cpus.len()).sum();
                lscpu
                    .nodes
                    .push((node, number_list(value, CPUS_MAX.saturating_sub(members).max(1))?));
            }
        }
    }
    Some(())
}

const PARSABLE: &str = "# The following is the parsable format";

pub(super) fn table_starts(line: &str) -> bool {
    line.starts_with(PARSABLE) || columns(line).is_some()
}

/// The names of the columns: `# CPU,Core,Socket,Node,...` of `-p`, `CPU NODE SOCKET CORE ...` of `-e`.
fn columns(line: &str) -> Option<Vec<String>> {
    let names: Vec<String> = match line.strip_prefix('#') {
        Some(rest) => rest.trim().split(',').map(str::to_ascii_uppercase).collect(),
        None => line.split_whitespace().map(str::to_owned).collect(),
    };
    (names.len() >= 2 && names.first()? == "CPU" && names.iter().any(|name| name == "CORE"))
        .then_some(names)
}

pub(super) fn table(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let mut names = None;
    while let Some(line) = lines.peek().filter(|line| line.starts_with('#') || names.is_none()) {
        names = columns(line).or(names);
        if names.is_none() && !line.starts_with('#') {
            return Err(Damage::new(
                lines.number(),
                "a table of lscpu without the columns CPU and CORE",
            ));
        }
        lines.skip(1);
    }
    let names = names.ok_or_else(|| {
        Damage::new(lines.number(), "a table of lscpu without the columns CPU and CORE")
    })?;
    let mut rows = Vec::new();
    while let Some(line) = lines.peek() {
        if line.trim().is_empty()
            || command_line(line).is_some()
            || !line.trim_start().starts_with(|letter: char| letter.is_ascii_digit())
        {
            break;
        }
        if rows.len() >= CPUS_MAX {
            return Err(Damage::new(lines.number(), format!("more than {CPUS_MAX} CPUs")));
        }
        let row = row(&names, line)
            .ok_or_else(|| Damage::new(lines.number(), "a CPU without a number"))?;
        rows.push(row);
        lines.skip(1);
    }
    pieces.push(Piece::LscpuTable(rows));
    Ok(())
}

fn row(names: &[String], line: &str) -> Option<LscpuRow> {
    // `-p` separates by commas and may leave a field empty; `-e` writes `-`.
    let fields: Vec<&str> = if line.contains(',') {
        line.split(',').map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    };
    let mut row = LscpuRow { cpu: fields.first()?.parse().ok()?, ..LscpuRow::default() };
    for (name, field) in names.iter().zip(fields) {
        match name.as_str() {
            "NODE" => row.node = field.parse().ok(),
            "SOCKET" => row.socket = field.parse().ok(),
            "CORE" => row.core = field.parse().ok(),
            "ONLINE" => row.is_online = Some(matches!(field, "yes" | "Y")),
            _ => {}
        }
    }
    Some(row)
}
