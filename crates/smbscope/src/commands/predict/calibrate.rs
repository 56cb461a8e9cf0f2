//! `smbscope predict calibrate`: what signing and encryption cost on this machine.
//!
//! Owns the file that it writes and the table that it shows. `smbscope_load::calibrate` measures, and
//! `smbscope_analysis::predict::crypto` fits the costs.

#[cfg(target_os = "linux")]
use std::fs;

use anyhow::Context as _;
use smbscope_analysis::predict::crypto::Calibration;
#[cfg(target_os = "linux")]
use smbscope_analysis::predict::crypto::Costs;
#[cfg(target_os = "linux")]
use smbscope_load::calibrate::Measured;

use super::args::Calibrate;
use crate::exit::{Code, Failure};
use crate::options::Verbosity;

/// Measures.
#[cfg(target_os = "linux")]
pub fn run(args: &Calibrate, verbosity: Verbosity) -> anyhow::Result<()> {
    use crate::format::TextFormat;
    use crate::output::Output;

    // A file that cannot be written should fail before the work.
    let mut file = args.out.as_deref().map(Output::file).transpose()?;
    let (calibration, measured) = measured(args, verbosity)?;
    let text = format!("{}\n", serde_json::to_string_pretty(&calibration).context("to JSON")?);
    if let Some(file) = &mut file {
        file.text(&text)?;
    }
    if let Some(file) = file {
        file.finish()?;
    }
    let mut output = Output::stdout();
    match args.format {
        TextFormat::Json => output.text(&text)?,
        TextFormat::Text => {
            let (bold, end) = output.bold();
            let mut table = table(&calibration, &measured, (&bold, end));
            if let Some(path) = &args.out {
                table.push_str(&format!(
                    "\nFor predictions: smbscope predict INPUT --change signing=aes-gmac --calibration {}\n",
                    path.display()
                ));
            }
            output.text(&table)?;
        }
    }
    output.finish()
}

#[cfg(not(target_os = "linux"))]
pub fn run(_: &Calibrate, _: Verbosity) -> anyhow::Result<()> {
    Err(Failure::usage("calibration needs Linux with Samba installed on this machine"))
}

#[cfg(target_os = "linux")]
fn measured(
    args: &Calibrate,
    verbosity: Verbosity,
) -> anyhow::Result<(Calibration, Vec<Measured>)> {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    use smbscope_analysis::predict::crypto::{self, fit};
    use smbscope_client::clock::Clock;
    use smbscope_lab::{Encryption, Lab, Options};
    use smbscope_load::calibrate::{Calibrated, Sample, measure};
    use smbscope_load::run::users::Credentials;

    use crate::{interrupt, log_time, terminal};

    let folder = tempfile::tempdir()
        .context("no temporary folder for the private Samba could be created")?;
    // A lab of root serves another system user, who must be able to enter the folder whatever the umask is.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))
        .context("the folder of the private Samba cannot be made accessible to its user")?;
    let options = Options {
        samba: args.samba.clone(),
        dir: Some(folder.path().join("lab")),
        users: 1,
        // Connections with a cipher.
        encryption: Encryption::Desired,
        ..Options::default()
    };
    let failed = |error: String| Failure::new(Code::Runtime, error);
    let lab = Lab::up(&options).map_err(|error| failed(error.to_string()))?.guard();
    let password = lab.password().map_err(|error| failed(error.to_string()))?;
    let credentials = Credentials::pattern(smbscope_lab::USER_PATTERN, &password)
        .map_err(|error| failed(error.to_string()))?;
    let bar = match verbosity.quiet || verbosity.no_progress || !terminal::stderr_is_terminal() {
        true => ProgressBar::hidden(),
        false => ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr()),
    };
    let style = ProgressStyle::with_template("{bar:24} {percent:>3}% {msg}, {eta} left");
    bar.set_style(style.context("progress bar")?);
    bar.set_message(format!("signing and encryption with Samba {}", lab.samba));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lasts = Duration::from_secs(args.seconds);
    let report = |share: f64| {
        bar.set_position((1000.0 * share) as u64);
        !interrupt::asked()
    };
    let measured = runtime.block_on(measure(&lab, &credentials.of(1), lasts, report));
    bar.finish_and_clear();
    // After an interruption there may be too few rounds; the guard stops the lab.
    interrupt::check()?;
    let Calibrated { measured, refused } = measured.map_err(|error| failed(error.to_string()))?;
    for error in refused.iter().filter(|_| !verbosity.quiet) {
        anstream::eprintln!("smbscope: left out: {error}");
    }
    let samples = |of: &[Sample]| -> Vec<crypto::Sample> {
        of.iter().map(|one| crypto::Sample { bytes: one.bytes, ns: one.ns }).collect()
    };
    let Some((_, plain)) = measured.first() else {
        return Err(failed("nothing was measured".to_owned()).into());
    };
    let plain = samples(plain);
    let costs = measured.iter().skip(1).map(|(way, of)| fit(*way, &samples(of), &plain));
    // Without optimisation the client's costs are not those of a user.
    let unoptimised = if cfg!(debug_assertions) { ", not optimised" } else { "" };
    let calibration = Calibration {
        machine: processor(),
        server: format!("Samba {}", lab.samba),
        client: format!("smbscope {}{unoptimised}", env!("CARGO_PKG_VERSION")),
        measured_at: log_time::utc(Clock::start().now()),
        costs: costs.collect(),
    };
    Ok((calibration, measured))
}

/// Time to read and to write a block: the operation's, and the client's before and after it, ns.
#[cfg(target_os = "linux")]
struct Blocks {
    name: &'static str,
    read: Option<(f64, f64)>,
    write: Option<(f64, f64)>,
}

#[cfg(target_os = "linux")]
impl Blocks {
    fn of(bytes: u64, (way, samples): &Measured) -> Blocks {
        // Without its data, a message is shorter than the smallest block.
        let find = |of: fn(&(u64, u64)) -> u64| {
            let is = |message: u64| (bytes..bytes + BLOCKS[0].1).contains(&message);
            samples.iter().find(|one| is(of(&one.bytes))).map(|one| one.ns)
        };
        Blocks { name: way.name(), read: find(|bytes| bytes.1), write: find(|bytes| bytes.0) }
    }
}

/// The blocks that are shown; the cost per byte may be different for longer ones.
#[cfg(target_os = "linux")]
const BLOCKS: [(&str, u64); 2] = [("64 KiB", 65_536), ("1 MiB", 1 << 20)];

/// The processor's name, from the kernel.
#[cfg(target_os = "linux")]
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| "unknown processor".to_owned())
}

#[cfg(target_os = "linux")]
fn table(calibration: &Calibration, measured: &[Measured], bold: (&str, &str)) -> String {
    use smbscope_analysis::predict::crypto::Side;

    use crate::format::{Column, lines};

    let titles = ["us/message", "ns/byte in", "GB/s", "ns/byte out", "GB/s"];
    let mut text = format!(
        "{}Additional time compared with plain messages{}\n{}; {}, {}\n",
        bold.0, bold.1, calibration.machine, calibration.server, calibration.client
    );
    type Of = fn(&Costs) -> &Side;
    let sides: [(&str, Of); 2] = [("server", |one| &one.server), ("client", |one| &one.client)];
    for (name, side) in sides {
        let body: Vec<_> = calibration
            .costs
            .iter()
            .map(|one| {
                let Side { inbound, outbound } = side(one);
                let message = (inbound.message_ns + outbound.message_ns) / 2e3;
                let mut cells = vec![one.protection.clone(), format!("{message:.2}")];
                for cost in [inbound, outbound] {
                    cells.push(format!("{:.3}", cost.byte_ns));
                    cells.push(match cost.byte_ns > 0.0 {
                        true => format!("{:.2}", 1.0 / cost.byte_ns),
                        false => String::new(),
                    });
                }
                cells
            })
            .collect();
        text.push_str(&format!("\n{}", lines(&Column::numbers_of(name, &titles), &body, bold)));
    }
    for (block, bytes) in BLOCKS {
        let blocks: Vec<_> = measured.iter().map(|of| Blocks::of(bytes, of)).collect();
        text.push_str(&format!(
            "\n{}One operation of {block}, in total{}\n{}",
            bold.0,
            bold.1,
            blocks_table(&blocks, bold)
        ));
    }
    text
}

#[cfg(target_os = "linux")]
fn blocks_table(blocks: &[Blocks], bold: (&str, &str)) -> String {
    use crate::format::{Column, lines};

    type Kind = fn(&Blocks) -> Option<(f64, f64)>;
    let plain = blocks.first();
    let body: Vec<_> = blocks
        .iter()
        .map(|one| {
            let mut cells = vec![one.name.to_owned()];
            let kinds: [Kind; 2] = [|one| one.read, |one| one.write];
            for kind in kinds {
                let (now, off) = (kind(one), plain.and_then(kind));
                let us = |ns: f64| format!("{:.1}", ns / 1e3);
                cells.push(now.map_or(String::new(), |ns| us(ns.0)));
                cells.push(match (now, off) {
                    (Some(now), Some(off)) if off.0 > 0.0 && one.name != "off" => {
                        format!("{:+.0}", 100.0 * (now.0 / off.0 - 1.0))
                    }
                    _ => String::new(),
                });
                // A plain message costs the client nearly nothing, so a percentage would say little.
                cells.push(now.map_or(String::new(), |ns| us(ns.1)));
            }
            cells
        })
        .collect();
    let titles = ["read, server us", "%", "client us", "write, server us", "%", "client us"];
    lines(&Column::numbers_of("protection", &titles), &body, bold)
}
