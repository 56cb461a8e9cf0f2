//! `smbscope compare`: two recordings side by side.
//!
//! Owns the command, its errors, and the rows for programs. The arithmetic is `smbscope_analysis::compare`, the text
//! is rendered by `smbscope_report`.

pub mod args;
mod cpu_traces;
mod network;

use std::sync::Arc;

use anyhow::Context as _;
use arrow::array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use smbscope_analysis::compare::{
    By, Change, Comparison, Effect, Measured, Options, Row, RowKind, Unit,
};

use smbscope_store::Table;

use smbscope_report::comparison::{ComparisonAnswer, comparison_warnings};

use self::args::Compare;
use crate::answer::{AnswerOptions, VERSION};
use crate::cli::PhaseCounted;
use crate::exit::{Code, Failure};
use crate::format::{JsonNulls, RowFormat, TextFormat};
use crate::options::{Verbosity, input_name};
use crate::output::Output;
use crate::pipeline;

/// Compares two recordings.
pub fn run(args: &Compare, verbosity: Verbosity) -> anyhow::Result<()> {
    let is_binary = args.answer.format().is_some_and(RowFormat::is_binary);
    Output::check(args.answer.out.as_ref(), is_binary)?;
    let inputs = [&args.a, &args.b].into_iter().chain(&args.more);
    if inputs.clone().filter(|input| *input == "-").count() > 1 {
        return Err(Failure::usage("`-` can be given once only: there is one standard input"));
    }
    let tokenizer = args.anonymize.tokenizer()?;
    let by = args.by.unwrap_or_default();
    let options =
        Options { by, all_phases: args.phase == Some(PhaseCounted::All), ..Options::default() };
    // Both are opened before the first is read, so that a missing input is reported at once.
    let open = |input: &String| {
        let mut source = args.reading.open(std::slice::from_ref(input), tokenizer.clone())?;
        args.trace.choose(&mut source).with_context(|| input.clone())?;
        anyhow::Ok(source)
    };
    let (mut a, mut b) = (open(&args.a)?, open(&args.b)?);
    if a.has_rows(Table::NetTests) || b.has_rows(Table::NetTests) {
        return network::run(args, tokenizer, verbosity);
    }
    if a.is_trace() || b.is_trace() {
        let mut sources = vec![(args.a.clone(), a), (args.b.clone(), b)];
        for input in &args.more {
            sources.push((input.clone(), open(input)?));
        }
        return cpu_traces::run(args, sources, verbosity);
    }
    if !args.more.is_empty() {
        return Err(Failure::usage(
            "more than two inputs can be compared only if they are CPU traces",
        ));
    }
    args.filter.apply(&mut a, &verbosity)?;
    args.filter.apply(&mut b, &verbosity)?;
    let destination = args.answer.open()?;
    let found = pipeline::compare::compare(&a, &b, &options, &verbosity)?;
    let names = [(&args.a, &a), (&args.b, &b)].map(|(input, source)| {
        args.filter
            .refuse_nothing(source)
            .map_err(|error| error.context(input.clone()))
            .map(|()| args.filter.with_selection(&input_name(input, tokenizer.as_ref()), source))
    });
    let [name_a, name_b] = names;
    let names = [name_a?, name_b?];
    refuse(&found, by, &names)?;
    let clock = args.filter.clock(found.a.start_ns);
    let answer =
        ComparisonAnswer { found: &found, names: &names, version: VERSION.to_owned(), clock };
    destination.show_rows(&answer, JsonNulls::Explicit, args.all, || {
        for line in comparison_warnings(&found, &names) {
            verbosity.say(&line);
        }
        batch(&found.rows)
    })
}

/// Text or JSON, which is all that some comparisons have.
fn text_only(args: &Compare, refusal: &'static str) -> anyhow::Result<AnswerOptions> {
    let format = match args.answer.format {
        None => None,
        Some(RowFormat::Text) => Some(TextFormat::Text),
        Some(RowFormat::Json) => Some(TextFormat::Json),
        Some(_) => return Err(Failure::usage(refusal)),
    };
    Ok(AnswerOptions { html: args.answer.html.clone(), format, out: args.answer.out.clone() })
}

/// An error where there is nothing to compare.
fn refuse(found: &Comparison, by: By, names: &[String; 2]) -> anyhow::Result<()> {
    let nothing = |message: String| Err(Failure::new(Code::Runtime, message).into());
    for (about, name) in [&found.a, &found.b].into_iter().zip(names) {
        if by == By::Scenario && about.users.is_none() {
            let needs = "--by scenario needs load runs (folders of --out of `smbscope load`)";
            return nothing(format!("{name}: contains no scenarios of a load run; {needs}"));
        }
        if by != By::Scenario && about.timed == 0 {
            let why = match (about.operations, about.left_out) {
                (0, 0) => "contains no operations".to_owned(),
                (0, n) => format!(
                    "contains no operations of a measured window ({n} others): try --phase all"
                ),
                (n, _) => format!("no operation of {n} has a time from request to reply"),
            };
            return nothing(format!("{name}: {why}: nothing to compare"));
        }
    }
    let is_group = |row: &&Row| row.a.timed > 0 && row.b.timed > 0 && is_group(row);
    if !found.rows.iter().any(|row| is_group(&row)) {
        let what = by.name();
        let [a, b] = names;
        return nothing(format!("{a} and {b} have no {what} in common: nothing to compare"));
    }
    Ok(())
}

/// Whether a row is one group, not a total.
fn is_group(row: &Row) -> bool {
    use RowKind::{Scenarios, Total, TotalAtMixOfA};
    !matches!(row.kind, Total | TotalAtMixOfA | Scenarios)
}

/// The rows for programs.
fn batch(rows: &[Row]) -> anyhow::Result<RecordBatch> {
    type Number = fn(&Measured) -> Option<f64>;
    const NUMBERS: [(&str, Number); 8] = [
        ("mean_seconds", |side| side.mean_s),
        ("p50_seconds", |side| side.p50_s),
        ("p95_seconds", |side| side.p95_s),
        ("p99_seconds", |side| side.p99_s),
        ("server_mean_seconds", |side| side.server_mean_s),
        ("bytes_per_operation", |side| side.bytes_per_operation),
        ("errors_per_operation", |side| side.errors_per_operation),
        ("operations_per_second", |side| side.operations_per_second),
    ];
    let changes: Vec<Option<&Change>> = rows.iter().map(|row| row.change.as_ref()).collect();
    let of_change = |of: fn(&Change) -> Option<f64>| -> ArrayRef {
        let values = changes.iter().map(|change| of((*change)?));
        Arc::new(values.collect::<Float64Array>())
    };
    let words = |words: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(words)) };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("kind".to_owned(), words(rows.iter().map(|row| Some(row.kind.name())).collect())),
        ("name".to_owned(), words(rows.iter().map(|row| row.name.as_deref()).collect())),
    ];
    for (prefix, side) in [("a", (|row| &row.a) as fn(&Row) -> &Measured), ("b", |row| &row.b)] {
        let counts = |of: fn(&Measured) -> Option<u64>| -> ArrayRef {
            Arc::new(rows.iter().map(|row| of(side(row))).collect::<UInt64Array>())
        };
        let mut push = |name: &str, values| columns.push((format!("{prefix}_{name}"), values));
        push("operations", counts(|side| Some(side.operations)));
        push("timed", counts(|side| Some(side.timed)));
        for (name, of) in NUMBERS {
            let values = rows.iter().map(|row| of(side(row)));
            push(name, Arc::new(values.collect::<Float64Array>()));
        }
        push("unit", words(rows.iter().map(|row| side(row).unit.map(Unit::name)).collect()));
        push("clusters", counts(|side| side.clusters));
    }
    let effect = |change: &Option<&Change>| (*change)?.effect.map(Effect::name);
    let significant = changes.iter().map(|change| change.map(|change| change.significant));
    let more: [(&str, ArrayRef); 9] = [
        ("change_percent", of_change(|change| Some(change.percent))),
        ("change_low_percent", of_change(|change| change.low_percent)),
        ("change_high_percent", of_change(|change| change.high_percent)),
        ("cliffs_delta", of_change(|change| change.cliffs_delta)),
        ("effect", words(changes.iter().map(effect).collect())),
        ("p", of_change(|change| change.p)),
        ("p_holm", of_change(|change| change.p_holm)),
        ("significant", Arc::new(significant.collect::<BooleanArray>())),
        ("degrees_of_freedom", of_change(|change| change.degrees_of_freedom)),
    ];
    columns.extend(more.map(|(name, values)| (name.to_owned(), values)));
    let nullable = columns.into_iter().map(|(name, values)| (name, values, true));
    Ok(RecordBatch::try_from_iter_with_nullable(nullable)?)
}
