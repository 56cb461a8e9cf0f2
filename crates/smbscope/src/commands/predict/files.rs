//! The files that `smbscope predict` writes and reads back: profiles and calibrations.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use smbscope_analysis::predict::crypto::Calibration;
use smbscope_analysis::predict::forecast::RecordedForecast;
use smbscope_analysis::predict::reduce;
use smbscope_report::format;
use smbscope_tables::profile::Profile;

use crate::exit::{Code, Failure};
use crate::output::Output;

/// These files have a few kilobytes; one with every command in every size is below this.
const FILE_MAX: u64 = 16 << 20;

/// Reads a profile.
pub fn read_profile(path: &Path) -> anyhow::Result<Profile> {
    let hint = "a profile is published, published-means, or a file that `smbscope predict RUN --save-profile \
                FILE` writes";
    read(path, "profile", hint, Profile::wrong)
}

/// Reads a calibration.
pub fn read_calibration(path: &Path) -> anyhow::Result<Calibration> {
    let hint = "`smbscope predict calibrate --out FILE` writes one";
    read(path, "calibration", hint, Calibration::wrong)
}

/// Writes the profile of what was recorded.
pub fn save_profile(
    forecast: &RecordedForecast,
    inputs: &[String],
    mut file: Output,
) -> anyhow::Result<()> {
    let names = inputs.iter().map(|input| {
        let name = Path::new(input).file_name().map_or(input.into(), |name| name.to_string_lossy());
        name.into_owned()
    });
    let name = names.collect::<Vec<_>>().join(", ");
    let prediction = &forecast.prediction;
    let mut source = format!(
        "{} operations of {name}, reduced by smbscope {}",
        format::count(prediction.timed),
        env!("CARGO_PKG_VERSION")
    );
    // A prediction from the profile has no other way to know.
    if prediction.without_rtt > 0 {
        source.push_str(&format!(
            "; the round trip of {} of them is not known and stays unchanged",
            format::count(prediction.without_rtt)
        ));
    }
    let profile =
        reduce::profile(prediction, forecast.users_s, &name, &source).ok_or_else(|| {
            Failure::usage("the recording has no duration, so rates cannot be computed")
        })?;
    let text = serde_json::to_string_pretty(&profile).context("to JSON")?;
    file.text(&format!("{text}\n"))?;
    file.finish()
}

/// Reads a file of a kind; `hint` says where such a file comes from, `wrong` why its content is not usable.
fn read<T: serde::de::DeserializeOwned>(
    path: &Path,
    kind: &str,
    hint: &str,
    wrong: impl Fn(&T) -> Option<String>,
) -> anyhow::Result<T> {
    let failed =
        |why: String| Failure::new(Code::Input, format!("{}: {why}; {hint}", path.display()));
    let unread = |error: std::io::Error| failed(format!("cannot be read: {error}"));
    if fs::metadata(path).map_err(unread)?.len() > FILE_MAX {
        return Err(failed(format!("is too large for a {kind}")).into());
    }
    let text = fs::read_to_string(path).map_err(unread)?;
    let content: T = serde_json::from_str(&text)
        .map_err(|error| failed(format!("is not a valid {kind}: {error}")))?;
    match wrong(&content) {
        Some(why) => Err(failed(why).into()),
        None => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read_calibration(file.path()).unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_calibration_is_reported_with_the_command_that_makes_one() {
        for text in ["", "{}", "[1]"] {
            let said = error(text);
            assert!(
                said.contains("is not a valid calibration") && said.contains("calibrate --out"),
                "{said}"
            );
        }
        let missing = read_calibration(Path::new("/nowhere/at/all")).unwrap_err().to_string();
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
