//! `smbscope plan cores`: the receive work of network adapters over processors.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use smbscope_plan::cores::assemble::assemble;
use smbscope_plan::cores::bundle::tar::is_tar;
use smbscope_plan::cores::bundle::{
    Bundle, Files, Folder, WINDOWS_SCRIPT, collect, read, read_bytes,
};
use smbscope_plan::cores::commands::{Request, commands};
use smbscope_plan::cores::findings::find;
use smbscope_plan::cores::layout::plan;
use smbscope_plan::cores::load::load;
use smbscope_plan::cores::prediction::{Connection, predict};
use smbscope_plan::cores::read::read as outputs;
use smbscope_plan::cores::topology::{Cpu, Machine, System};
use smbscope_plan::cores::traced;
use smbscope_report::{CoresPlan, cores_html, cores_json, cores_text};
use smbscope_store::source::Input;

use super::{new_file, undo_path};
use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::{Reading, Verbosity};
use crate::output::Output;
use crate::pipeline::received::{Recorded, recorded};
use crate::terminal;

/// Columns of a plan that does not go to a terminal.
const WIDTH: usize = 100;
/// The longest file with outputs that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Plan which cores receive for which network adapter.
///
/// Reads the machine: this one (Linux), a file of --collect from another one, the JSON of the script for Windows, or
/// files with the text of commands, several in one file if you like: Get-NetAdapterRss, Get-NetAdapterHardwareInfo,
/// Get-NetAdapter, Get-NetAdapterAdvancedProperty, Get-SmbMultichannelConnection and Get-SmbServerNetworkInterface of
/// Windows, and ethtool -l, -x, -k, -i, -c, -g and -S, lscpu, /proc/interrupts, /proc/softirqs and
/// /proc/net/softnet_stat of Linux. A trace of the processors (.etl, perf.data, trace.dat, a recording of
/// `smbscope record --cpu`) has the machine's processors and adapters, and who really received: it can be given alone, or
/// next to the machine's settings.
///
/// Shows what is wrong with receive-side scaling and interrupts, a layout (each adapter on cores of its own NUMA node,
/// first hyper-threads only, no two adapters on one core while another one is free), and the commands that make it so,
/// each with what it interrupts, its undo and a check. With several NUMA nodes, also where the file server's processes
/// run. With --recording, the recorded connections go through the adapter's hash and the planned table: each core's
/// share of the packets before and after. With a trace, the load of each core before and after. One connection stays on
/// one core, whatever the plan.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope plan cores                                           # this machine
  smbscope plan cores --collect machine.tar                     # there ...
  smbscope plan cores machine.tar                               # ... and here
  smbscope plan cores --print-windows-script > collect.ps1      # the same for Windows
  smbscope plan cores rss.txt hardware.txt                      # pasted outputs
  smbscope plan cores machine.tar --recording monday.pcapng     # what it brings
  smbscope plan cores flood.etl                                 # a trace of the processors: load before and after
  smbscope plan cores flood.etl rss.txt                         # the same with the settings found, for an exact undo
  smbscope plan cores machine.tar --script apply.sh             # and apply.undo.sh next to it
  smbscope plan cores machine.tar --html plan.html              # with a drawing of before and after
  smbscope plan cores --format json | jq '.findings'")]
pub struct Cores {
    /// A file of --collect, a folder with its contents, files with outputs of commands, or a trace of the processors.
    /// Without any: this machine.
    #[arg(value_name = "INPUT")]
    pub machine: Vec<PathBuf>,
    /// Write what is read of this machine to a file (tar), for a plan elsewhere. It holds settings, counters and the places
    /// of the file server's processes, no traffic. A file that exists is not replaced.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "recording", "script", "management"])]
    pub collect: Option<PathBuf>,
    /// Print a PowerShell script that writes what is read of a Windows machine to a file (JSON). It changes nothing.
    #[arg(long, conflicts_with_all = ["machine", "recording", "script", "management", "collect"])]
    pub print_windows_script: bool,
    /// A capture or run of the same machine, whose connections are placed, or a trace of its processors. Can be given
    /// several times.
    #[arg(long, value_name = "RECORDING")]
    pub recording: Vec<String>,
    /// The adapter that the recorded connections used, if the machine has several.
    #[arg(long, value_name = "NAME", requires = "recording")]
    pub adapter: Option<String>,
    /// The adapter by which the machine is reached: it is changed last.
    #[arg(long, value_name = "NAME")]
    pub management: Option<String>,
    /// Write the commands to this file, and their undo to one next to it (NAME.undo.EXTENSION). Files that exist are
    /// not replaced.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Write a self-contained HTML page to this file instead of text to standard output: the machine before and after
    /// as a drawing, findings, and the commands as a checklist.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["collect", "print_windows_script"])]
    pub html: Option<PathBuf>,
    /// Output format; `smbscope schema cores` describes json [default: text; with --html no output].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<TextFormat>,
    /// How the recording is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// Makes the plan.
pub fn run(args: &Cores, verbosity: Verbosity) -> anyhow::Result<()> {
    if args.print_windows_script {
        let mut output = Output::stdout();
        output.text(WINDOWS_SCRIPT)?;
        return output.finish();
    }
    if let Some(path) = &args.collect {
        let bytes = collect(&*live()?).map_err(|error| Failure::usage(error.to_string()))?;
        return new_file(path, &bytes);
    }
    let (traces, files) =
        args.machine.iter().cloned().partition::<Vec<_>, _>(|path| is_trace(path));
    let inputs: Vec<String> = traces
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .chain(args.recording.iter().cloned())
        .collect();
    let mut recorded = match inputs.is_empty() {
        true => Recorded::default(),
        false => recorded(&args.reading.open(&inputs, None)?, &verbosity)?,
    };
    let trace = recorded.trace.take();
    let Bundle { mut machine, unknown_count, .. } = match (&trace, &files[..]) {
        (Some(trace), []) if !traces.is_empty() => {
            Bundle { machine: traced::machine(&trace.machine), ..Bundle::default() }
        }
        (None, []) if !traces.is_empty() => {
            return Err(Failure::usage(format!(
                "{}: the trace has no processors",
                traces[0].display()
            )));
        }
        _ => machine(&files)?,
    };
    if let Some(trace) = trace {
        add_trace(&mut machine, &trace.machine)?;
        machine.received = Some(trace.received);
    }
    for (what, name) in [("--management", &args.management), ("--adapter", &args.adapter)] {
        if let Some(name) = name {
            index(&machine, name).with_context(|| what.to_owned())?;
        }
    }
    let layout = plan(&machine);
    let request = Request {
        management: args.management.clone(),
        flow_entries: machine.flow_entries,
        flow_counts: machine
            .cards
            .iter()
            .filter(|card| !card.rss.flows.is_empty())
            .map(|card| (card.name.clone(), card.rss.flows.clone()))
            .collect(),
    };
    let commands = commands(&machine, &layout, &request);
    let mut plan = CoresPlan {
        findings: find(&machine),
        machine,
        layout,
        commands,
        prediction: None,
        load: None,
        unknown_lines: unknown_count,
    };
    // A trace without packets has no connections, which is not a fault.
    let is_trace_only = recorded.connections.is_empty() && plan.machine.received.is_some();
    if !args.recording.is_empty() && !is_trace_only {
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
        let received = &recorded.connections;
        let connections: Vec<_> =
            received.iter().filter_map(|row| received_on(row, card)).collect();
        let mut prediction = predict(&plan.machine, &plan.layout, &connections);
        prediction.ignored += (received.len() - connections.len()) as u64 + recorded.beyond_limit;
        plan.prediction = Some(prediction);
    }
    if let Some(received) = &plan.machine.received {
        plan.load = load(&plan.machine, &plan.layout, received, plan.prediction.as_ref());
    }
    let html = args.html.as_deref().map(Output::file).transpose()?;
    if let Some(path) = &args.script {
        new_file(&undo_path(path), plan.commands.undo_script().as_bytes())?;
        new_file(path, plan.commands.apply_script().as_bytes())?;
    }
    if let Some(mut output) = html {
        let names: Vec<_> = args.machine.iter().map(|path| path.display().to_string()).collect();
        output.text(&cores_html(&plan, &names, env!("CARGO_PKG_VERSION")))?;
        output.finish()?;
    }
    let format = match (args.format, &args.html) {
        (None, Some(_)) => return Ok(()),
        (format, _) => format.unwrap_or_default(),
    };
    let mut output = Output::stdout();
    match format {
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

/// Takes processors of a trace where the settings have none. Load of another machine would be wrong on this one.
fn add_trace(machine: &mut Machine, trace: &traced::Trace) -> anyhow::Result<()> {
    let name = |system| match system {
        System::Linux => "Linux",
        System::Windows => "Windows",
    };
    let has_settings = !machine.cpus.is_empty() || !machine.cards.is_empty();
    if has_settings && machine.system != trace.system {
        return Err(Failure::usage(format!(
            "the trace is of {}, and the settings are of {}: give those of the same machine",
            name(trace.system),
            name(machine.system)
        )));
    }
    let of_trace = traced::machine(trace);
    if machine.cpus.is_empty() {
        machine.cpus = of_trace.cpus;
        machine.assumptions.extend(of_trace.assumptions);
        return Ok(());
    }
    let known: BTreeSet<_> = machine.cpus.iter().map(|cpu| (cpu.group, cpu.number)).collect();
    let is_other = |cpu: &&Cpu| !known.contains(&(cpu.group, cpu.number));
    let others = of_trace.cpus.iter().filter(is_other).count();
    if others > 0 {
        machine.assumptions.push(format!(
            "The trace is of the same machine, although it has processors that the settings do not list ({others} of {})",
            of_trace.cpus.len()
        ));
    }
    Ok(())
}

/// Whether a file is a trace of processors, or a recording with one.
fn is_trace(path: &Path) -> bool {
    match Input::recognise(&path.to_string_lossy()) {
        Ok(Input::Trace { .. }) => true,
        Ok(Input::Dataset(dataset)) => dataset
            .manifest()
            .is_some_and(|manifest| manifest.rows(smbscope_store::Table::Cpus.name()) > 0),
        _ => false,
    }
}

/// A recorded connection as the hash of the adapter sees it. What RDMA and QUIC carry is not spread by TCP ports: `None`.
fn received_on(row: &smbscope_tables::tables::Connection, card: usize) -> Option<Connection> {
    row.transport.as_deref().is_none_or(|name| name == "tcp").then_some(())?;
    Some(Connection {
        card,
        client: row.client.parse::<IpAddr>().ok()?,
        client_port: u16::try_from(row.client_port).ok()?,
        server: row.server.parse::<IpAddr>().ok()?,
        server_port: u16::try_from(row.server_port).ok()?,
        bytes: row.bytes_to_server,
        packets: row.packets_to_server,
    })
}

/// This machine, or the one that the inputs describe.
fn machine(paths: &[PathBuf]) -> anyhow::Result<Bundle> {
    let named = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::usage(format!("{}: {error}", path.display()))
    };
    match paths {
        [] => read(&*live()?).map_err(|error| Failure::usage(error.to_string())),
        [path] if path.is_dir() => read(&Folder::new(path)).map_err(|error| named(path, &error)),
        [path] => read_bytes(&bytes(path)?).map_err(|error| named(path, &error)),
        paths => {
            let mut bundle = Bundle::default();
            let mut pieces = Vec::new();
            for path in paths {
                let bytes = bytes(path)?;
                if is_tar(&bytes) {
                    let message = "a file of --collect has all of a machine: give it alone";
                    return Err(named(path, &message));
                }
                let reading = outputs(&bytes).map_err(|error| named(path, &error))?;
                pieces.extend(reading.pieces);
                bundle.unknown_count += reading.unknown_count;
            }
            bundle.machine = assemble(&pieces);
            Ok(bundle)
        }
    }
}

#[cfg(target_os = "linux")]
fn live() -> anyhow::Result<Box<dyn Files>> {
    Ok(Box::new(smbscope_plan::cores::bundle::Live::new()))
}

#[cfg(not(target_os = "linux"))]
fn live() -> anyhow::Result<Box<dyn Files>> {
    Err(Failure::usage(
        "give an input: this machine itself is read on Linux only. On Windows, run the script of --print-windows-script",
    ))
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{name}: longer than 64 MiB, too long for the outputs of commands. \
             A capture goes to --recording"
        )));
    }
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_rdma_and_quic_are_not_placed() {
        let row = |transport: Option<&str>| smbscope_tables::tables::Connection {
            transport: transport.map(Into::into),
            client: "10.0.0.1".into(),
            client_port: 50_000,
            server: "10.0.0.2".into(),
            server_port: 445,
            ..Default::default()
        };
        for (transport, is_placed) in [
            (None, true),
            (Some("tcp"), true),
            (Some("roce"), false),
            (Some("iwarp"), false),
            (Some("quic"), false),
        ] {
            assert_eq!(received_on(&row(transport), 0).is_some(), is_placed, "{transport:?}");
        }
        let named = smbscope_tables::tables::Connection { client: "a name".into(), ..row(None) };
        assert_eq!(received_on(&named, 0), None);
    }

    #[test]
    fn the_undo_is_next_to_the_script() {
        assert_eq!(undo_path(Path::new("a/apply.ps1")), Path::new("a/apply.undo.ps1"));
        assert_eq!(undo_path(Path::new("apply")), Path::new("apply.undo"));
    }
}
