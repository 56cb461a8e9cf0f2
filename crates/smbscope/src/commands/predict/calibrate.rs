//! `smbscope predict calibrate`: what signing and encryption cost on this machine.
//!
//! Owns the file that it writes. `smbscope_load::calibrate` measures, `smbscope_analysis::predict::crypto` fits the
//! costs, and `smbscope_report` makes the table.

#[cfg(target_os = "linux")]
use std::fs;

use anyhow::Context as _;
#[cfg(target_os = "linux")]
use smbscope_analysis::predict::crypto::{Calibration, Measured};

use super::args::Calibrate;
use crate::exit::{Code, Failure};
use crate::options::Verbosity;

/// Measures.
#[cfg(target_os = "linux")]
pub fn run(args: &Calibrate, verbosity: Verbosity) -> anyhow::Result<()> {
    use smbscope_report::load::calibration::calibration_text;

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
            let mut table = calibration_text(&calibration, &measured, (bold, end));
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
    use smbscope_analysis::predict::crypto::{self, fit, fit_plain};
    use smbscope_client::clock::Clock;
    use smbscope_lab::{Encryption, Lab, Options};
    use smbscope_load::calibrate::{Calibrated, Sample, measure};
    use smbscope_load::run::users::Credentials;

    use crate::{interrupt, terminal};

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
    let bar = if verbosity.quiet || verbosity.no_progress || !terminal::stderr_is_terminal() {
        ProgressBar::hidden()
    } else {
        ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr())
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
    let measured = runtime.block_on(measure(&lab, &credentials.of_user(1), lasts, report));
    bar.finish_and_clear();
    // After an interruption there may be too few rounds; the guard stops the lab.
    interrupt::check()?;
    let Calibrated { measured, refused } = measured.map_err(|error| failed(error.to_string()))?;
    for error in refused.iter().filter(|_| !verbosity.quiet) {
        anstream::eprintln!("smbscope: left out: {error}");
    }
    let measured: Vec<Measured> = measured
        .into_iter()
        .map(|(protection, samples)| {
            let of = |one: Sample| crypto::Sample { bytes: one.bytes, ns: one.ns };
            Measured { protection, samples: samples.into_iter().map(of).collect() }
        })
        .collect();
    let Some((plain, others)) = measured.split_first() else {
        return Err(failed("nothing was measured".to_owned()).into());
    };
    let costs = others.iter().map(|one| fit(one.protection, &one.samples, &plain.samples));
    // Without optimisation the client's costs are not those of a user.
    let unoptimised = if cfg!(debug_assertions) { ", not optimised" } else { "" };
    let calibration = Calibration {
        machine: processor(),
        server: format!("Samba {}", lab.samba),
        client: format!("smbscope {}{unoptimised}", env!("CARGO_PKG_VERSION")),
        measured_at: smbscope_report::Clock::default().exact(Clock::start().now()),
        plain: Some(fit_plain(&plain.samples)),
        costs: costs.collect(),
    };
    Ok((calibration, measured))
}

/// The CPU's name, from the kernel.
#[cfg(target_os = "linux")]
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| "unknown processor".to_owned())
}
