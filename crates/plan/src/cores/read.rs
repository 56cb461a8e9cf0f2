//! Text that people paste: what `ethtool`, `lscpu`, `/proc` and PowerShell print, recognised by content.
//!
//! Owns the order in which formats are recognised; each format has one file below. A text may hold several outputs one
//! after the other, with the prompts between them. It does not decide which machine the pieces describe: that is
//! [`super::assemble`].

use serde::{Deserialize, Serialize};

mod adapter;
mod adapter_hardware;
mod adapter_rss;
mod cpuinfo;
mod ethtool;
mod interrupts;
mod linux_lists;
mod lscpu;
mod multichannel;
mod network_interface;
mod objects;
pub(in crate::cores) mod pci;
mod power;
pub(crate) mod processors;
mod server_process;
mod softirqs;
mod softnet;
mod system_files;
#[cfg(test)]
pub(crate) mod tests;

pub use adapter::{AdvancedProperty, ListedAdapter};
pub use adapter_hardware::AdapterHardware;
pub use adapter_rss::{AdapterRss, RssProcessor};
pub use ethtool::channels::Channels;
pub use ethtool::coalesce::Coalescing;
pub use ethtool::driver::Driver;
pub use ethtool::features::Features;
pub use ethtool::indirection::Indirection;
pub use ethtool::rings::Rings;
pub use ethtool::settings::Settings;
pub use ethtool::statistics::Statistics;
pub use interrupts::{Interrupt, Interrupts};
pub use linux_lists::{mask_list, number_list};
pub use lscpu::{Lscpu, LscpuRow};
pub use multichannel::MultichannelConnection;
pub use network_interface::NetworkInterface;
pub use pci::{PciDevice, PciLink};
pub use power::{IdleState, Power, PowerPlan};
pub use processors::{LogicalProcessors, Processor};
pub use server_process::ServerProcess;
pub use softirqs::Softirqs;
pub use softnet::SoftnetRow;

use crate::input::Damage;
use crate::input::lines::Lines;
use crate::input::text::decode;
use crate::input::unknown::Unknowns;

/// Longest text that is read.
const BYTES_MAX: usize = 16 << 20;
/// Logical processors of a machine, and members of a list of them.
pub(crate) const CPUS_MAX: usize = 16_384;
/// Entries of an indirection table.
pub(crate) const TABLE_MAX: usize = 65_536;
/// Pieces of one text.
const PIECES_MAX: usize = 65_536;

/// One output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    AdapterRss(AdapterRss),
    AdapterHardware(AdapterHardware),
    Adapter(ListedAdapter),
    AdvancedProperty(AdvancedProperty),
    MultichannelConnection(MultichannelConnection),
    /// `Get-SmbServerNetworkInterface`.
    ServerInterface(NetworkInterface),
    /// `Get-SmbClientNetworkInterface`.
    ClientInterface(NetworkInterface),
    /// CPUs of Windows with their cores, packages and nodes.
    Processors(LogicalProcessors),
    Channels(Channels),
    Indirection(Indirection),
    Features(Features),
    Driver(Driver),
    Coalescing(Coalescing),
    Rings(Rings),
    Statistics(Statistics),
    Settings(Settings),
    Lscpu(Lscpu),
    LscpuTable(Vec<LscpuRow>),
    Interrupts(Interrupts),
    Softirqs(Softirqs),
    Softnet(Vec<SoftnetRow>),
    /// `lspci -vv`: a network adapter.
    PciDevice(PciDevice),
    Power(Power),
    /// Files below `/sys` and `/proc`, with their contents: `grep . FILES`.
    SystemFiles(Vec<(String, String)>),
    /// A process that serves files on Windows.
    ServerProcess(ServerProcess),
    /// The heading of an output that no plan needs.
    NotNeeded(String),
    /// A message of a program that could not answer.
    Failure(String),
}

/// What a text contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    pub pieces: Vec<Piece>,
    /// Lines that no reader understood.
    pub unknown: Unknowns,
}

/// Reads a text in any encoding that Windows' tools write. An error names the first line
/// that is damaged, or says that no known output was found.
pub fn read(bytes: &[u8]) -> Result<Reading, Damage> {
    if bytes.len() > BYTES_MAX {
        return Err(Damage::new(
            1,
            format!("{} bytes of text; at most {BYTES_MAX} are read", bytes.len()),
        ));
    }
    let text = decode(bytes).text;
    let mut lines = Lines::new(&text);
    let mut pieces = Vec::new();
    while let Some(line) = lines.peek() {
        if pieces.len() >= PIECES_MAX {
            return Err(Damage::new(
                lines.number(),
                format!("more than {PIECES_MAX} outputs in one text"),
            ));
        }
        if line.trim().is_empty() {
            lines.skip(1);
        } else if let Some(device) = command_line(line) {
            lines.device = device;
            lines.skip(1);
        } else if let Some(format) = recognise(&lines) {
            let before = lines.number();
            format.read(&mut lines, &mut pieces)?;
            if lines.number() == before {
                lines.pass_unknown();
            }
        } else {
            lines.pass_unknown();
        }
    }
    if pieces.is_empty() {
        return Err(Damage::new(
            1,
            "no known output; expected Get-NetAdapterRss, Get-NetAdapterHardwareInfo, Get-NetAdapter, \
             Get-SmbMultichannelConnection, Get-SmbServerNetworkInterface, ethtool -l/-x/-k/-i/-c/-g/-S, lscpu, \
             /proc/interrupts, /proc/softirqs, /proc/net/softnet_stat, lspci -vv, cpupower, powercfg, or grep . of files \
             below /sys and /proc/irq",
        ));
    }
    Ok(Reading { pieces, unknown: lines.unknown })
}

/// The formats, in the order in which they are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Ethtool(ethtool::Heading),
    PowershellList,
    PowershellTable,
    Json,
    CliXml,
    Lscpu,
    LscpuTable,
    CpuInfo,
    Counters,
    Softnet,
    Pci,
    Power,
    SystemFiles,
}

impl Format {
    fn read(self, lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
        match self {
            Self::Ethtool(heading) => ethtool::read(heading, lines, pieces),
            Self::PowershellList => objects::list(lines, pieces),
            Self::PowershellTable => objects::table(lines, pieces),
            Self::Json => objects::json(lines, pieces),
            Self::CliXml => objects::xml(lines, pieces),
            Self::Lscpu => lscpu::read(lines, pieces),
            Self::LscpuTable => lscpu::table(lines, pieces),
            Self::CpuInfo => cpuinfo::read(lines, pieces),
            Self::Counters if softirqs::starts(lines) => softirqs::read(lines, pieces),
            Self::Counters => interrupts::read(lines, pieces),
            Self::Softnet => softnet::read(lines, pieces),
            Self::Pci => {
                pci::read(lines, pieces);
                Ok(())
            }
            Self::Power => {
                power::read(lines, pieces);
                Ok(())
            }
            Self::SystemFiles => {
                system_files::read(lines, pieces);
                Ok(())
            }
        }
    }
}

/// The format that begins at the next line.
fn recognise(lines: &Lines<'_>) -> Option<Format> {
    let line = lines.peek()?;
    if let Some(heading) = ethtool::heading(line) {
        Some(Format::Ethtool(heading))
    } else if system_files::starts(line) {
        Some(Format::SystemFiles)
    } else if pci::starts(line) {
        Some(Format::Pci)
    } else if power::starts(line) {
        Some(Format::Power)
    } else if lscpu::starts(line) {
        Some(Format::Lscpu)
    } else if cpuinfo::starts(line) {
        Some(Format::CpuInfo)
    } else if lscpu::table_starts(line) {
        Some(Format::LscpuTable)
    } else if softnet::starts(line) {
        Some(Format::Softnet)
    } else if interrupts::starts(line) {
        Some(Format::Counters)
    } else if matches!(line.trim_start().chars().next(), Some('{' | '[')) {
        Some(Format::Json)
    } else if objects::clixml_starts(lines) {
        Some(Format::CliXml)
    } else if objects::list_starts(lines) {
        Some(Format::PowershellList)
    } else if objects::table_starts(lines) {
        Some(Format::PowershellTable)
    } else {
        None
    }
}

/// Whether a reader must stop before the next line: the text ends, a command was typed, or another output begins.
fn ends(lines: &Lines<'_>) -> bool {
    lines.peek().is_none_or(|line| command_line(line).is_some()) || recognise(lines).is_some()
}

/// Whether a line is a command that somebody typed, with or without its prompt; and the adapter that it names.
fn command_line(line: &str) -> Option<Option<String>> {
    let line = line.trim();
    if line.starts_with("PS ") && line.contains('>') {
        return Some(None);
    }
    let typed = ["# ", "$ ", "> "]
        .iter()
        .filter_map(|prompt| line.split_once(prompt))
        .map(|(_, typed)| typed.trim());
    for command in std::iter::once(line).chain(typed) {
        let command = command.strip_prefix("sudo ").unwrap_or(command);
        let mut words = command.split_whitespace();
        let first = words.next()?;
        match first.rsplit('/').next() {
            Some("ethtool") => {
                let options: Vec<&str> = words.collect();
                let device = options.last().filter(|word| !word.starts_with('-'));
                if options.first().is_some_and(|word| word.starts_with('-') && !word.contains('|'))
                {
                    return Some(device.map(|word| (*word).to_owned()));
                }
            }
            Some("cat" | "grep") if command.contains("/proc/") || command.contains("/sys/") => {
                return Some(None);
            }
            Some("lspci" | "cpupower" | "powercfg") => return Some(None),
            Some("lscpu") if words.all(|word| word.starts_with('-')) => return Some(None),
            _ => {}
        }
    }
    None
}
