//! `smbscope query`: SQL over the inputs, from the command line, a file, a named question,
//! standard input, or a prompt.

mod answer;
mod arguments;
mod prompt;
mod statements;

use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

use anyhow::Context as _;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use smbscope_store::questions;
use smbscope_store::sql::{Engine, EngineOptions};

use crate::cli::Query;
use crate::exit::{Code, Failure};
use crate::format::{Align, Column, JsonNulls, RowFormat, lines, row_writer};
use crate::options::{Verbosity, read_text};
use crate::output::Output;
use crate::terminal;

use answer::Form;

/// Runs `smbscope query`.
pub fn run(args: &Query, verbosity: Verbosity) -> anyhow::Result<()> {
    if args.questions {
        return write_questions(args);
    }
    let (inputs, sql) = arguments::resolve(args)?;
    let sql = match (&args.file, &args.question) {
        (Some(path), _) => Some(read_text(path)?),
        (_, Some(name)) => Some(question(name)?),
        _ => sql,
    };
    let form = Form {
        format: args.format,
        out: args.out.clone(),
        verbosity,
        readable: args.question.is_some(),
    };
    let statements = sql.map(|sql| statements::all(&sql));
    let prompts = std::io::stdin().is_terminal() && terminal::stdout_is_terminal();
    if statements.is_none() && !prompts && inputs.iter().any(|input| input == "-") {
        return Err(Failure::usage(
            "standard input is the capture: specify the SQL on the command line or with --file",
        ));
    }
    if statements.is_some() || prompts {
        check(statements.as_deref(), &form)?;
    }
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args
        .reading
        .open(&inputs, tokenizer)
        .map_err(|error| arguments::explain(error, args, inputs.len()))?;
    args.filter.apply_to_any(&mut source, &verbosity)?;
    // Report a missing input before waiting for SQL on standard input.
    let statements = match statements {
        None if !prompts => {
            let mut sql = String::new();
            std::io::stdin().read_to_string(&mut sql).with_context(|| {
                Failure::new(Code::Input, "cannot read the SQL from standard input")
            })?;
            let statements = statements::all(&sql);
            check(Some(&statements), &form)?;
            Some(statements)
        }
        statements => statements,
    };
    let options = EngineOptions { threads: args.reading.threads, ..EngineOptions::default() };
    let engine = Arc::new(Engine::with_options(source, options)?);
    match statements {
        None => prompt::run(&engine, &form, &inputs),
        Some(statements) => {
            for sql in statements {
                answer::write(&engine, &sql, &form)?;
            }
            Ok(())
        }
    }
}

/// Errors that do not depend on the inputs.
fn check(statements: Option<&[String]>, form: &Form) -> anyhow::Result<()> {
    Output::check(form.out.as_ref(), form.format.is_binary())?;
    match statements {
        Some([]) => Err(Failure::new(Code::Query, "the SQL is empty").into()),
        Some([_, _, ..]) if form.is_single() => Err(Failure::usage(
            "this output can hold only one answer, but there are several statements: use --format text, json or csv without --out",
        )),
        None if form.is_single() => {
            Err(Failure::usage("the prompt supports only --format text, json or csv, and no --out"))
        }
        _ => Ok(()),
    }
}

/// The SQL of a named question.
fn question(name: &str) -> anyhow::Result<String> {
    let question = questions::get(name).ok_or_else(|| {
        Failure::usage(format!("{name}: unknown question; `smbscope query --questions` lists them"))
    })?;
    Ok(question.sql())
}

/// The named questions in the requested format.
fn write_questions(args: &Query) -> anyhow::Result<()> {
    let mut output = Output::open(args.out.as_ref())?;
    if args.format == RowFormat::Text {
        let text = question_list(&output);
        output.text(&text)?;
        return output.finish();
    }
    Output::check(args.out.as_ref(), args.format.is_binary())?;
    let schema = Arc::new(Schema::new(
        ["question", "title", "sql"].map(|name| Field::new(name, DataType::Utf8, false)).to_vec(),
    ));
    let list = questions::list();
    let column = |of: fn(&questions::Question) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(list.iter().map(of)))
    };
    let columns = vec![
        column(|question| question.name.to_owned()),
        column(|question| question.title().to_owned()),
        column(questions::Question::sql),
    ];
    let mut writer = row_writer(args.format, JsonNulls::Explicit, false, &schema, output)?;
    writer.write(&RecordBatch::try_new(schema, columns)?)?;
    writer.finish()
}

/// The named questions with their titles.
fn question_list(output: &Output) -> String {
    let columns = ["question", "what it answers"];
    let columns = columns.map(|title| Column { title: title.into(), align: Align::Left });
    let rows = questions::list().iter();
    let rows = rows.map(|question| vec![question.name.to_owned(), question.title().to_owned()]);
    let (bold, end) = output.bold();
    lines(&columns, &rows.collect::<Vec<_>>(), (bold, end))
}
