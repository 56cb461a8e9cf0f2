//! `smbscope predict`: what a change would bring.
//!
//! Owns: what is shown of a prediction, as text and as rows, from a profile ([`profile`]) or from
//! recordings ([`recorded`], from a [`forecast`]; [`detail`]). The arithmetic is `smbscope_analysis::predict`.

pub mod args;
mod calibrate;
mod detail;
pub mod forecast;
mod profile;
mod recorded;
mod waiting;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use smbscope_analysis::predict::changes::{Change, SPECS};

use self::args::{Action, Predict};
use crate::exit::{Code, Failure};
use crate::format::{Column, JsonNulls, RowFormat, lines, row_writer};
use crate::options::Talk;
use crate::output::Output;

/// Predicts, or lists what can be.
pub fn run(args: &Predict, talk: Talk) -> anyhow::Result<()> {
    if let Some(Action::Calibrate(args)) = &args.action {
        return calibrate::run(args, talk);
    }
    Output::check(args.out.as_ref(), args.format.is_binary())?;
    match &args.profile {
        _ if args.list => list(args),
        Some(profile) => profile::run(args, profile),
        None => recorded::run(args, talk),
    }
}

/// Files of predictions are some kilobytes; one with every command in every size is below this.
const FILE_MAX: u64 = 16 << 20;

/// Reads a file of a kind that `smbscope predict` writes; `hint` says how to come by one, `wrong` what makes
/// its content unusable.
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
        return Err(failed(format!("is too large to be a {kind}")).into());
    }
    let text = fs::read_to_string(path).map_err(unread)?;
    let content: T =
        serde_json::from_str(&text).map_err(|error| failed(format!("is no {kind}: {error}")))?;
    match wrong(&content) {
        Some(why) => Err(failed(why).into()),
        None => Ok(content),
    }
}

/// The assumptions of the changes, each once.
fn taken_for_granted(changes: &[Change], bold: (&str, &str)) -> String {
    let mut text = format!("\n{}Taken for granted{}\n", bold.0, bold.1);
    for assumption in Change::assumptions(changes) {
        text.push_str(assumption);
        text.push('\n');
    }
    text
}

fn list(args: &Predict) -> anyhow::Result<()> {
    let words = |of: fn(&smbscope_analysis::predict::changes::Spec) -> &'static str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(SPECS.iter().map(of)))
    };
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("change", words(|spec| spec.name), false),
        ("example", words(|spec| spec.example), false),
        ("meaning", words(|spec| spec.meaning), false),
        ("needs", words(|spec| spec.needs), false),
    ])?;
    if args.format != RowFormat::Text {
        return write(batch, args.format, Output::open(args.out.as_ref())?);
    }
    let mut output = Output::open(args.out.as_ref())?;
    let (bold, end) = output.bold();
    let titles = ["example", "meaning", "needs"];
    let columns = titles.map(Column::left);
    let body =
        SPECS.map(|spec| [spec.example, spec.meaning, spec.needs].map(str::to_owned).to_vec());
    output.text(&lines(&columns, &body, (&bold, end)))?;
    output.finish()
}

fn write(batch: RecordBatch, format: RowFormat, output: Output) -> anyhow::Result<()> {
    let mut writer = row_writer(format, JsonNulls::LeftOut, &batch.schema(), output)?;
    writer.write(&batch)?;
    writer.finish()
}
