//! `smbscope predict`: what a change would bring.
//!
//! Owns the command: its arguments ([`args`]), its files ([`files`]), and which prediction is made and where
//! it is written. `pipeline::forecast` makes it, `smbscope_report::prediction` shows it.

pub mod args;
mod calibrate;
pub(super) mod files;

use arrow::array::RecordBatch;
use smbscope_analysis::predict::forecast::ProfileForecast;
use smbscope_analysis::predict::published;
use smbscope_report::prediction::{Style, changes, detail, profile, recorded};
use smbscope_report::{prediction_html, profile_html};

use self::args::{Action, Predict, ProfileName};
use crate::exit::Failure;
use crate::filter_options::{refuse_nothing, selections};
use crate::format::{JsonNulls, RowFormat, row_writer};
use crate::options::{Verbosity, input_name};
use crate::output::Output;
use crate::pipeline::forecast::forecast;
use crate::terminal;

/// Predicts, or lists what can be predicted.
pub fn run(args: &Predict, verbosity: Verbosity) -> anyhow::Result<()> {
    if let Some(Action::Calibrate(args)) = &args.action {
        return calibrate::run(args, verbosity);
    }
    Output::check(args.out.as_ref(), args.format.is_some_and(RowFormat::is_binary))?;
    match &args.profile {
        _ if args.list => answer(args, changes::text, || Ok(changes::batch()?)),
        Some(name) => from_profile(args, name),
        None => from_recordings(args, verbosity),
    }
}

fn from_profile(args: &Predict, name: &ProfileName) -> anyhow::Result<()> {
    let today = match name {
        ProfileName::Published => published::profile(),
        ProfileName::PublishedMeans => published::means(),
        ProfileName::File(path) => files::read_profile(path)?,
    };
    let name = today.name.clone();
    let forecast = ProfileForecast::new(today, &args.prediction.changes).map_err(|missing| {
        Failure::usage(format!(
            "--change {}: the profile {name} lacks what this change needs: {}",
            missing.change, missing.what
        ))
    })?;
    page(args, || profile_html(&forecast, env!("CARGO_PKG_VERSION")))?;
    answer(args, |style| profile::text(&forecast, style), || Ok(profile::batch(&forecast)?))
}

/// Writes the page, if one is requested.
fn page(args: &Predict, html: impl FnOnce() -> String) -> anyhow::Result<()> {
    let Some(path) = &args.html else { return Ok(()) };
    let mut output = Output::file(path)?;
    output.text(&html())?;
    output.finish()
}

fn from_recordings(args: &Predict, verbosity: Verbosity) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.reading.open(&args.inputs, tokenizer.clone())?;
    args.filter.apply(&mut source, &verbosity)?;
    // A file that cannot be written should fail before the work.
    let file = args.save_profile.as_deref().map(Output::file).transpose()?;
    let request = args.prediction.request(args.detail || file.is_some())?;
    let forecast = forecast(&mut source, request, &verbosity);
    // That the filter leaves nothing explains most errors.
    refuse_nothing(&source)?;
    let mut forecast = forecast?;
    let selections = selections(&source).into_iter();
    forecast.notes.extend(selections.map(|selection| format!("Replayed: {selection}.")));
    if let Some(file) = file {
        let inputs = args.inputs.iter().map(|input| input_name(input, tokenizer.as_ref()));
        files::save_profile(&forecast, &inputs.collect::<Vec<_>>(), file)?;
    }
    page(args, || {
        let names: Vec<_> = args.inputs.iter().map(|input| input_name(input, None)).collect();
        prediction_html(&forecast, &names, env!("CARGO_PKG_VERSION"))
    })?;
    match forecast.prediction.detail.as_ref().filter(|_| args.detail) {
        Some(all) => {
            answer(args, |style| detail::text(&forecast, all, style), || Ok(detail::batch(all)?))
        }
        None => answer(
            args,
            |style| recorded::text(&forecast, style),
            || Ok(recorded::batch(&forecast)?),
        ),
    }
}

/// Writes the answer in the requested format.
fn answer(
    args: &Predict,
    text: impl FnOnce(Style) -> String,
    batch: impl FnOnce() -> anyhow::Result<RecordBatch>,
) -> anyhow::Result<()> {
    let format = match (args.format, &args.html, &args.out) {
        (None, Some(_), None) => return Ok(()),
        (format, ..) => format.unwrap_or_default(),
    };
    if format == RowFormat::Text {
        let mut output = Output::open(args.out.as_ref())?;
        let (bold, end) = output.bold();
        let text = text(Style { bold: (&bold, end), width: terminal::width() });
        output.text(&text)?;
        return output.finish();
    }
    let batch = batch()?;
    let output = Output::open(args.out.as_ref())?;
    let mut writer = row_writer(format, JsonNulls::LeftOut, false, &batch.schema(), output)?;
    writer.write(&batch)?;
    writer.finish()
}
