//! Writes the answer of one statement as it arrives; Ctrl-C ends it.
//!
//! The engine runs in a separate thread, so that this one can check for Ctrl-C.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use smbscope_store as store;
use smbscope_store::sql::Engine;

use crate::exit::{Code, Failure, code_of};
use crate::format::{JsonNulls, RowFormat, row_writer};
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::progress::Shown;

/// Interval between two checks for Ctrl-C.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// How answers are written.
#[derive(Clone)]
pub struct Form {
    pub format: RowFormat,
    pub out: Option<PathBuf>,
    pub verbosity: Verbosity,
    /// Whether durations and sizes are written for people.
    pub readable: bool,
}

impl Form {
    /// Whether the output can hold only one answer.
    pub fn is_single(&self) -> bool {
        self.format.is_binary() || self.out.is_some()
    }
}

/// A message of the engine's thread.
enum Message {
    Schema(SchemaRef),
    Rows(RecordBatch),
    Failed(store::Error),
}

/// Answers one statement.
pub fn write(engine: &Arc<Engine>, sql: &str, form: &Form) -> anyhow::Result<()> {
    let messages = ask(engine, sql)?;
    let of = engine.clone();
    let mut shown = Shown::begin_of(form.verbosity, move || of.progress());
    let Some(Message::Schema(schema)) = next(&messages)? else {
        return Err(Failure::new(Code::Query, "the query ended without a result").into());
    };
    // Only now: an invalid query must not overwrite the file.
    let output = Output::open(form.out.as_ref())?;
    let on_terminal = output.is_terminal();
    let mut writer = row_writer(form.format, JsonNulls::Explicit, form.readable, &schema, output)?;
    let mut rows = 0;
    let end = loop {
        match next(&messages) {
            Ok(Some(Message::Rows(batch))) => {
                if on_terminal {
                    // Rows and a progress bar would mix on one terminal.
                    shown.end();
                }
                writer.write(&batch)?;
                rows += batch.num_rows();
            }
            Ok(Some(_)) => {}
            Ok(None) => break Ok(()),
            Err(error) if code_of(&error) == Code::Interrupted => break Err(error),
            Err(error) => return Err(error),
        }
    };
    shown.end();
    // Also after Ctrl-C, so that the file is valid. A table heading alone is useless.
    if end.is_ok() || rows > 0 || form.format != RowFormat::Text {
        writer.finish()?;
    }
    end
}

fn ask(engine: &Arc<Engine>, sql: &str) -> anyhow::Result<Receiver<Message>> {
    let (sender, receiver) = sync_channel(2);
    let (engine, sql) = (engine.clone(), sql.to_owned());
    let work = move || -> Result<(), ()> {
        let send = |message| sender.send(message).map_err(drop);
        let answer = match engine.query(&sql) {
            Ok(answer) => answer,
            Err(error) => return send(Message::Failed(error)),
        };
        send(Message::Schema(answer.schema()))?;
        for batch in answer {
            match batch {
                Ok(batch) => send(Message::Rows(batch))?,
                Err(error) => return send(Message::Failed(error)),
            }
        }
        Ok(())
    };
    // An error means that the receiver is gone: nothing is left to do.
    let thread = std::thread::Builder::new().name("answer".into()).spawn(move || work().ok());
    thread
        .map(|_| receiver)
        .map_err(|error| anyhow::Error::new(error).context("cannot start a thread for the query"))
}

fn next(messages: &Receiver<Message>) -> anyhow::Result<Option<Message>> {
    loop {
        interrupt::check()?;
        match messages.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(Message::Failed(error)) => return Err(error.into()),
            Ok(message) => return Ok(Some(message)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
