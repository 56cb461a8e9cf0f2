//! `smbscope plan cores`: the receive work of network adapters over CPUs.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use smbscope_plan::cores::added::{ADDED_MAX, Wanted};
use smbscope_plan::cores::assemble::assemble;
use smbscope_plan::cores::bundle::tar::is_tar;
use smbscope_plan::cores::bundle::{
    Bundle, Files, Folder, WINDOWS_SCRIPT, collect, read, read_bytes,
};
use smbscope_plan::cores::read::read as outputs;
use smbscope_report::cores::CoresPlan;
use smbscope_store::source::Input;
use smbscope_tables::quantity::parse_rate;

use super::{new_file, undo_path};
use crate::answer::{AnswerOptions, VERSION};
use crate::exit::Failure;
use crate::options::{Reading, Verbosity};
use crate::output::Output;
use crate::pipeline::cores::{Inputs, plan};
use crate::pipeline::rss_inputs::{Recorded, recorded};

/// The longest file with outputs that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Plan which cores receive for which network adapter.
///
/// Reads the machine: this one (Linux, Windows), a file of --collect from another one, the JSON of the script for Windows, or
/// files with the text of commands, several in one file if you like: Get-NetAdapterRss, Get-NetAdapterHardwareInfo,
/// Get-NetAdapter, Get-NetAdapterAdvancedProperty, Get-SmbMultichannelConnection, Get-SmbServerNetworkInterface and
/// powercfg /getactivescheme of Windows, and ethtool -l, -x, -k, -i, -c, -g and -S, lscpu, /proc/interrupts, /proc/softirqs, /proc/net/softnet_stat,
/// lspci -vv, cpupower, and `grep .` of files below /sys and /proc/irq of Linux. A trace of the CPUs (.etl, perf.data, trace.dat, a recording of
/// `smbscope record --cpu`) has the machine's CPUs and adapters, and who really received: it can be given alone, or
/// next to the machine's settings.
///
/// Shows what is wrong with receive-side scaling and interrupts, a layout (each adapter on cores of its own NUMA node,
/// first hyper-threads only, no two adapters on one core while another one is free), and the commands that make it so,
/// each with what it interrupts, its undo and a check. With several NUMA nodes, also where the file server's processes
/// run. With --recording, the recorded connections go through the adapter's hash and the planned table: each core's
/// share of the packets before and after. With a trace, the load of each core before and after. One connection stays on
/// one core, whatever the plan.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("html", |arg| arg.conflicts_with_all(["collect", "print_windows_script"]).help(
        "Write a self-contained HTML page to this file instead of text to standard output: the machine before and \
         after as a drawing, findings, and the commands as a checklist"
    )),
    mut_arg("format", |arg| arg.help(
        "Output format; `smbscope schema cores` describes json [default: text; with --html no output]"
    ))
)]
#[command(after_help = "\
Examples:
  smbscope plan cores                                           # this machine
  smbscope plan cores --collect machine.tar                     # there ...
  smbscope plan cores machine.tar                               # ... and here
  smbscope plan cores --print-windows-script > collect.ps1      # the same for Windows
  smbscope plan cores rss.txt hardware.txt                      # pasted outputs
  smbscope plan cores machine.tar --recording monday.pcapng     # the expected effect
  smbscope plan cores flood.etl                                 # a trace of the CPUs: load before and after
  smbscope plan cores flood.etl rss.txt                         # the same with the settings found, for an exact undo
  smbscope plan cores machine.tar --script apply.sh             # and apply.undo.sh next to it
  smbscope plan cores machine.tar --adapters 6x10gbit           # what if six were added
  smbscope plan cores machine.tar --html plan.html              # with a drawing of before and after
  smbscope plan cores --format json | jq '.findings'")]
pub struct Cores {
    /// A file of --collect, a folder with its contents, files with outputs of commands, or a trace of the CPUs.
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
    /// A capture or run of the same machine, whose connections are placed, or a trace of its CPUs. Can be
    /// repeated.
    #[arg(long, value_name = "RECORDING")]
    pub recording: Vec<String>,
    /// The adapter that the recorded connections used, if the machine has several.
    #[arg(long, value_name = "NAME", requires = "recording")]
    pub adapter: Option<String>,
    /// The adapter by which the machine is reached: it is changed last.
    #[arg(long, value_name = "NAME")]
    pub management: Option<String>,
    /// What if adapters were added, such as 6x10gbit: their nodes, CPUs, addresses and DNS entries, and how the recorded
    /// clients would spread, beside SMB Multichannel and a team.
    #[arg(long, value_name = "COUNTxRATE", value_parser = wanted, conflicts_with_all = ["collect", "print_windows_script"])]
    pub adapters: Option<Wanted>,
    /// Write the commands to this file, and their undo to one next to it (NAME.undo.EXTENSION). Files that exist are
    /// not replaced.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Where the plan goes.
    #[command(flatten)]
    pub answer: AnswerOptions,
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
    let recorded = if inputs.is_empty() {
        Recorded::default()
    } else {
        recorded(&args.reading.open(&inputs, None)?, &verbosity)?
    };
    let settings = match (&recorded.trace, &files[..], traces.first()) {
        (Some(_), [], Some(_)) => None,
        (None, [], Some(path)) => {
            let path = path.display();
            return Err(Failure::usage(format!("{path}: the trace has no CPUs")));
        }
        _ => Some(machine(&files)?),
    };
    let made = plan(Inputs {
        settings,
        recorded,
        management: args.management.clone(),
        adapter: args.adapter.clone(),
        places_connections: !args.recording.is_empty(),
        added: args.adapters,
    })?;
    let plan = CoresPlan {
        version: VERSION.to_owned(),
        inputs: args.machine.iter().map(|path| path.display().to_string()).collect(),
        ..made
    };
    let destination = args.answer.open()?;
    if let Some(path) = &args.script {
        new_file(&undo_path(path), plan.commands.undo_script().as_bytes())?;
        new_file(path, plan.commands.apply_script().as_bytes())?;
    }
    destination.show(&plan, true)
}

/// `6x10gbit`.
fn wanted(text: &str) -> Result<Wanted, String> {
    let expected =
        || format!("expected COUNTxRATE such as 6x10gbit, with 1 to {ADDED_MAX} adapters");
    let (count, rate) = text.split_once(['x', 'X']).ok_or_else(expected)?;
    let adapters = count.trim().parse::<u32>().map_err(|_| expected())?;
    let bits_per_second = parse_rate(rate.trim()).map_err(|error| error.to_string())?;
    let is_valid = (1..=ADDED_MAX).contains(&adapters) && bits_per_second > 0;
    is_valid.then_some(Wanted { adapters, bits_per_second }).ok_or_else(expected)
}

/// Whether a file is a CPU trace, or a recording with one.
fn is_trace(path: &Path) -> bool {
    match Input::recognise(&path.to_string_lossy()) {
        Ok(Input::Trace { .. }) => true,
        Ok(Input::Dataset(dataset)) => dataset
            .manifest()
            .is_some_and(|manifest| manifest.rows(smbscope_store::Table::Cpus.name()) > 0),
        _ => false,
    }
}

/// This machine, or the one that the inputs describe.
fn machine(paths: &[PathBuf]) -> anyhow::Result<Bundle> {
    let named = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::usage(format!("{}: {error}", path.display()))
    };
    match paths {
        [] if cfg!(windows) => {
            let bytes = crate::windows::file_of_script(WINDOWS_SCRIPT, "machine.json")?;
            read_bytes(&bytes).map_err(|error| Failure::usage(error.to_string()))
        }
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
                bundle.unknown.extend_from(&path.display().to_string(), reading.unknown);
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
        "give an input: this machine itself is read on Linux and Windows only. On Windows, --print-windows-script prints what collects",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_adapters_are_a_count_and_a_rate() {
        let six = Wanted { adapters: 6, bits_per_second: 10_000_000_000 };
        assert_eq!(wanted("6x10gbit"), Ok(six));
        for wrong in
            ["", "6", "x10gbit", "6x", "0x10gbit", "65x1gbit", "6x10Gbps", "6x0gbit", "-1x1gbit"]
        {
            assert!(wanted(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_undo_is_next_to_the_script() {
        assert_eq!(undo_path(Path::new("a/apply.ps1")), Path::new("a/apply.undo.ps1"));
        assert_eq!(undo_path(Path::new("apply")), Path::new("apply.undo"));
    }
}
