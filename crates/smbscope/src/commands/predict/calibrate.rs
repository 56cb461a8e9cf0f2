//! `smbscope predict calibrate`: what signing and encryption cost on this machine.
//!
//! Owns: the file that it writes and the table that it shows. What is measured, and how, is
//! `smbscope_load::calibrate`; what is made of it `smbscope_model::predict::crypto`.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use smbscope_model::predict::crypto::Calibration;

use super::args::Calibrate;
use crate::exit::{Code, Failure};
use crate::options::Talk;

/// Files are some kilobytes.
const FILE_MAX: u64 = 1 << 20;

/// Reads what was measured.
pub fn read(path: &Path) -> anyhow::Result<Calibration> {
    let name = path.display();
    let failed = |why: String| {
        Failure::new(
            Code::Input,
            format!("{name}: {why}; `smbscope predict calibrate --out FILE` writes one"),
        )
    };
    let size =
        fs::metadata(path).map_err(|error| failed(format!("cannot be read: {error}")))?.len();
    if size > FILE_MAX {
        return Err(failed("is too large to be a calibration".to_owned()).into());
    }
    let text =
        fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let calibration: Calibration = serde_json::from_str(&text)
        .map_err(|error| failed(format!("is no calibration: {error}")))?;
    match calibration.wrong() {
        Some(why) => Err(failed(why).into()),
        None => Ok(calibration),
    }
}

/// Measures.
#[cfg(target_os = "linux")]
pub fn run(args: &Calibrate, talk: Talk) -> anyhow::Result<()> {
    use crate::format::TextFormat;
    use crate::output::Output;

    // A file that cannot be written is better known before.
    let mut file = args.out.as_deref().map(Output::file).transpose()?;
    let calibration = measured(args, talk)?;
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
            let mut table = table(&calibration, (&bold, end));
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
pub fn run(_: &Calibrate, _: Talk) -> anyhow::Result<()> {
    Err(Failure::usage("calibrating needs a Samba on this machine, and Linux"))
}

#[cfg(target_os = "linux")]
fn measured(args: &Calibrate, talk: Talk) -> anyhow::Result<Calibration> {
    use std::time::Duration;

    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    use smbscope_load::calibrate::{Calibrated, Sample, measure};
    use smbscope_load::lab::{Encryption, Lab, Options};
    use smbscope_load::run::who::Credentials;
    use smbscope_model::predict::crypto::{self, fit};

    use crate::terminal;

    let folder = tempfile::tempdir().context("no folder for a Samba of one's own")?;
    let options = Options {
        samba: args.samba.clone(),
        dir: Some(folder.path().join("lab")),
        users: 1,
        // Of those that offer a cipher.
        encryption: Encryption::Desired,
        ..Options::default()
    };
    let failed = |error: String| Failure::new(Code::Runtime, error);
    let lab = Lab::up(&options).map_err(|error| failed(error.to_string()))?.guard();
    let password = lab.password().map_err(|error| failed(error.to_string()))?;
    let credentials = Credentials::pattern(smbscope_load::lab::USER_PATTERN, &password)
        .map_err(|error| failed(error.to_string()))?;
    let bar = match talk.quiet || talk.no_progress || !terminal::stderr_is_terminal() {
        true => ProgressBar::hidden(),
        false => ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr()),
    };
    let style = ProgressStyle::with_template("{bar:24} {percent:>3}% {msg}, {eta} left");
    bar.set_style(style.context("progress bar")?);
    bar.set_message(format!("signing and encryption with Samba {}", lab.samba));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lasts = Duration::from_secs(args.seconds);
    let told = |share: f64| bar.set_position((1000.0 * share) as u64);
    let measured = runtime.block_on(measure(&lab, &credentials.of(1), lasts, told));
    bar.finish_and_clear();
    let Calibrated { measured, refused } = measured.map_err(|error| failed(error.to_string()))?;
    for error in refused.iter().filter(|_| !talk.quiet) {
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
    Ok(Calibration {
        machine: processor(),
        server: format!("Samba {}", lab.samba),
        client: format!("smbscope {}", env!("CARGO_PKG_VERSION")),
        costs: costs.collect(),
    })
}

/// The processor's name, as the kernel knows it.
#[cfg(target_os = "linux")]
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| "unknown processor".to_owned())
}

#[cfg(target_os = "linux")]
fn table(calibration: &Calibration, bold: (&str, &str)) -> String {
    use crate::format::{Column, lines};

    let mut columns = vec![Column::left("protection")];
    columns.extend(
        ["server us/message", "ns/byte in", "out", "client us/message", "ns/byte in", "out"]
            .map(Column::right),
    );
    let body: Vec<_> = calibration
        .costs
        .iter()
        .map(|one| {
            let mut cells = vec![one.protection.clone()];
            for side in [one.server, one.client] {
                let both = side.inbound.message_ns + side.outbound.message_ns;
                cells.push(format!("{:.2}", both / 2e3));
                cells.push(format!("{:.3}", side.inbound.byte_ns));
                cells.push(format!("{:.3}", side.outbound.byte_ns));
            }
            cells
        })
        .collect();
    format!(
        "{}Processor time beyond that of plain messages{}\n{}; {}, {}\n\n{}",
        bold.0,
        bold.1,
        calibration.machine,
        calibration.server,
        calibration.client,
        lines(&columns, &body, bold)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_calibration_is_told_with_the_way_to_one() {
        for text in ["", "{}", "[1]"] {
            let said = error(text);
            assert!(
                said.contains("is no calibration") && said.contains("calibrate --out"),
                "{said}"
            );
        }
        let missing = read(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(missing.contains("/nowhere/at/all: cannot be read"), "{missing}");
        let costs = "{\"message_ns\": -1.0, \"byte_ns\": 0.0}";
        let side = format!("{{\"inbound\": {costs}, \"outbound\": {costs}}}");
        let said = error(&format!(
            "{{\"machine\": \"\", \"server\": \"\", \"client\": \"\", \"costs\": [{{\"protection\": \"aes-cmac\", \
             \"server\": {side}, \"client\": {side}}}]}}"
        ));
        assert!(said.contains("aes-cmac"), "{said}");
    }
}
