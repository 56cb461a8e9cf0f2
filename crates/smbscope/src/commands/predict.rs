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
use smbscope_report::Answer;
use smbscope_report::prediction::{
    ChangesAnswer, DetailAnswer, PredictionAnswer, ProfileAnswer, changes, detail, profile,
    recorded,
};

use self::args::{Action, Predict, ProfileName};
use crate::answer::{VERSION, names};
use crate::exit::Failure;
use crate::format::{JsonNulls, RowFormat};
use crate::options::{Verbosity, input_name};
use crate::output::Output;
use crate::pipeline::forecast::forecast;

/// Predicts, or lists what can be predicted.
pub fn run(args: &Predict, verbosity: Verbosity) -> anyhow::Result<()> {
    if let Some(Action::Calibrate(args)) = &args.action {
        return calibrate::run(args, verbosity);
    }
    let is_binary = args.answer.format.is_some_and(RowFormat::is_binary);
    Output::check(args.answer.out.as_ref(), is_binary)?;
    match &args.profile {
        _ if args.list => answer(args, &ChangesAnswer, || Ok(changes::batch()?)),
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
    let shown = ProfileAnswer { forecast: &forecast, version: VERSION };
    answer(args, &shown, || Ok(profile::batch(&forecast)?))
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
    args.filter.refuse_nothing(&source)?;
    let mut forecast = forecast?;
    let selections = args.filter.selections(&source).into_iter();
    forecast.notes.extend(selections.map(|selection| format!("Replayed: {selection}.")));
    if let Some(file) = file {
        let inputs = args.inputs.iter().map(|input| input_name(input, tokenizer.as_ref()));
        files::save_profile(&forecast, &inputs.collect::<Vec<_>>(), file)?;
    }
    if let Some(detail) = forecast.prediction.detail.as_ref().filter(|_| args.detail) {
        let shown = DetailAnswer { forecast: &forecast, detail };
        return answer(args, &shown, || Ok(detail::batch(detail)?));
    }
    let inputs = names(&args.inputs, None);
    let shown = PredictionAnswer { forecast: &forecast, inputs: &inputs, version: VERSION };
    answer(args, &shown, || Ok(recorded::batch(&forecast)?))
}

fn answer(
    args: &Predict,
    answer: &dyn Answer,
    rows: impl FnOnce() -> anyhow::Result<RecordBatch>,
) -> anyhow::Result<()> {
    args.answer.open()?.show_rows(answer, JsonNulls::LeftOut, false, rows)
}
