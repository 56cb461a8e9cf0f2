//! `smbscope plan cores`: the receive work of network adapters over processors.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use smbscope_plan::cores::assemble::assemble;
use smbscope_plan::cores::commands::{Request, commands};
use smbscope_plan::cores::findings::find;
use smbscope_plan::cores::layout::plan;
use smbscope_plan::cores::prediction::{Connection, Cost, predict};
use smbscope_plan::cores::read::{Reading as Read, read};
use smbscope_plan::cores::topology::Machine;
use smbscope_report::{CoresPlan, cores_json, cores_text};

use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::{Reading, Verbosity};
use crate::output::Output;
use crate::pipeline::received::connections;
use crate::terminal;

/// Columns of a plan that does not go to a terminal.
const WIDTH: usize = 100;
/// The longest file with outputs that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Plan which cores receive for which network adapter.
///
/// Reads what describes the machine: files with the text of commands, in any order and any number in one file:
/// Get-NetAdapterRss, Get-NetAdapterHardwareInfo, Get-NetAdapter, Get-NetAdapterAdvancedProperty,
/// Get-SmbMultichannelConnection and Get-SmbServerNetworkInterface of Windows (as text or JSON), and ethtool -l, -x, -k,
/// -i, -c, -g and -S, lscpu, /proc/interrupts, /proc/softirqs and /proc/net/softnet_stat of Linux.
///
/// Shows what is wrong with receive-side scaling and interrupts, a layout (each adapter on cores of its own NUMA node,
/// first hyper-threads only, no two adapters on one core while another one is free), and the commands that make it so,
/// each with what it interrupts, its undo and a check. With --recording, the recorded connections go through the
/// adapter's hash and the planned table: each core's share of the packets before and after. One connection stays on one
/// core, whatever the plan.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope plan cores rss.txt hardware.txt                      # pasted outputs of Windows
  lscpu > m.txt; cat /proc/interrupts >> m.txt
  for o in l x i c; do ethtool -$o eth0 >> m.txt; done
  smbscope plan cores m.txt
  smbscope plan cores m.txt --recording monday.pcapng           # what it brings
  smbscope plan cores rss.txt --script apply.ps1                # and apply.undo.ps1 next to it
  smbscope plan cores m.txt --format json | jq '.findings'")]
pub struct Cores {
    /// Files with outputs of commands that describe the machine.
    #[arg(value_name = "FILE", required = true)]
    pub machine: Vec<PathBuf>,
    /// A capture or run of the same machine, whose connections are placed. Can be given several times.
    #[arg(long, value_name = "INPUT")]
    pub recording: Vec<String>,
    /// The adapter that the recorded connections used, if the machine has several.
    #[arg(long, value_name = "NAME", requires = "recording")]
    pub adapter: Option<String>,
    /// The adapter by which the machine is reached: it is changed last.
    #[arg(long, value_name = "NAME")]
    pub management: Option<String>,
    /// Write the commands to this file, and their undo to one next to it (NAME.undo.EXTENSION). Files that exist are
    /// not replaced without --force.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    /// How the recording is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// Makes the plan.
pub fn run(args: &Cores, verbosity: Verbosity) -> anyhow::Result<()> {
    let (machine, unknown) = machine(&args.machine)?;
    for (what, name) in [("--management", &args.management), ("--adapter", &args.adapter)] {
        if let Some(name) = name {
            index(&machine, name).with_context(|| what.to_owned())?;
        }
    }
    let layout = plan(&machine);
    let request = Request { management: args.management.clone(), ..Request::default() };
    let commands = commands(&machine, &layout, &request);
    let mut plan = CoresPlan {
        findings: find(&machine),
        machine,
        layout,
        commands,
        prediction: None,
        unknown_lines: unknown,
    };
    if !args.recording.is_empty() {
        let card = match (&args.adapter, &plan.machine.cards[..]) {
            (Some(name), _) => index(&plan.machine, name)?,
            (None, [_]) => 0,
            (None, cards) => {
                let names: Vec<_> = cards.iter().map(|card| card.name.as_str()).collect();
                return Err(Failure::usage(format!(
                    "--recording: which adapter did its connections use? Give --adapter: {}",
                    names.join(", ")
                )));
            }
        };
        let source = args.reading.open(&args.recording, None)?;
        let received = connections(&source, &verbosity)?;
        let of = |row: &smbscope_tables::tables::Connection| {
            Some(Connection {
                card,
                client: row.client.parse::<IpAddr>().ok()?,
                client_port: u16::try_from(row.client_port).ok()?,
                server: row.server.parse::<IpAddr>().ok()?,
                server_port: u16::try_from(row.server_port).ok()?,
                bytes: row.bytes_to_server,
                packets: row.packets_to_server,
            })
        };
        let connections: Vec<_> = received.iter().filter_map(of).collect();
        plan.prediction = Some(predict(&plan.machine, &plan.layout, &connections, Cost::default()));
    }
    if let Some(path) = &args.script {
        write(path, &plan.commands.apply_script())?;
        write(&undo_path(path), &plan.commands.undo_script())?;
    }
    let mut output = Output::stdout();
    match args.format {
        TextFormat::Text => {
            let bold = output.style(anstyle::Style::new().bold());
            let (begin, end) = (bold.0.to_string(), bold.1.to_string());
            let width = terminal::width().unwrap_or(WIDTH);
            output.text(&cores_text(&plan, width, (&begin, &end)))?;
        }
        TextFormat::Json => {
            let value = cores_json(&plan).context("plan to JSON")?;
            output.text(&format!("{value:#}\n"))?;
        }
    }
    output.finish()
}

/// The machine that the files describe, and lines in them that were not understood.
fn machine(paths: &[PathBuf]) -> anyhow::Result<(Machine, u64)> {
    let (mut pieces, mut unknown) = (Vec::new(), 0);
    for path in paths {
        let name = path.display();
        let length = std::fs::metadata(path).with_context(|| format!("cannot read {name}"))?.len();
        if length > FILE_BYTES_MAX {
            return Err(Failure::usage(format!("{name}: too long for the outputs of commands")));
        }
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        let Read { pieces: read_pieces, unknown_count, .. } =
            read(&bytes).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        pieces.extend(read_pieces);
        unknown += unknown_count;
    }
    Ok((assemble(&pieces), unknown))
}

fn index(machine: &Machine, name: &str) -> anyhow::Result<usize> {
    machine.cards.iter().position(|card| card.name == name).ok_or_else(|| {
        let names: Vec<_> = machine.cards.iter().map(|card| card.name.as_str()).collect();
        Failure::usage(format!(
            "{name}: the machine has no such adapter; it has {}",
            names.join(", ")
        ))
    })
}

/// `apply.ps1` to `apply.undo.ps1`.
fn undo_path(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.undo.{}", extension.to_string_lossy()),
        None => format!("{stem}.undo"),
    };
    path.with_file_name(name)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut output = Output::file(path)?;
    output.text(text)?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_undo_is_next_to_the_script() {
        assert_eq!(undo_path(Path::new("a/apply.ps1")), Path::new("a/apply.undo.ps1"));
        assert_eq!(undo_path(Path::new("apply")), Path::new("apply.undo"));
    }
}
