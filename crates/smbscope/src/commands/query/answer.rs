//! One statement's answer, written as it comes; Ctrl-C ends it.
//!
//! The engine works in a thread of its own, so that this one can look for Ctrl-C.

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
use crate::options::Talk;
use crate::output::Output;
use crate::progress::Shown;

/// Between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// How answers are written.
pub struct Form {
    pub format: RowFormat,
    pub out: Option<PathBuf>,
    pub talk: Talk,
}

impl Form {
    /// Whether there is room for one answer only.
    pub fn is_single(&self) -> bool {
        self.format.is_binary() || self.out.is_some()
    }
}

/// What the engine's thread says.
enum Message {
    Schema(SchemaRef),
    Rows(RecordBatch),
    Failed(store::Error),
}

/// Answers one statement.
pub fn write(engine: &Arc<Engine>, sql: &str, form: &Form) -> anyhow::Result<()> {
    let messages = ask(engine, sql)?;
    let of = engine.clone();
    let mut shown = Shown::begin_of(form.talk, move || of.progress());
    let Some(Message::Schema(schema)) = next(&messages)? else {
        return Err(Failure::new(Code::Query, "the query ended without an answer").into());
    };
    // Only now: a query that is wrong leaves a file of that name alone.
    let output = Output::open(form.out.as_ref())?;
    let on_terminal = output.is_terminal();
    let mut writer = row_writer(form.format, JsonNulls::Explicit, &schema, output)?;
    let mut rows = 0;
    let end = loop {
        match next(&messages) {
            Ok(Some(Message::Rows(batch))) => {
                if on_terminal {
                    // Rows and a progress bar on one terminal would mix.
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
    // Also after Ctrl-C: a file that was begun gets its end. A table's head alone says nothing.
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
    // An error means that nobody listens any more, and then there is nothing left to do.
    let thread = std::thread::Builder::new().name("answer".into()).spawn(move || work().ok());
    thread
        .map(|_| receiver)
        .map_err(|error| anyhow::Error::new(error).context("no thread for the query"))
}

fn next(messages: &Receiver<Message>) -> anyhow::Result<Option<Message>> {
    loop {
        interrupt::check()?;
        match messages.recv_timeout(LOOK) {
            Ok(Message::Failed(error)) => return Err(error.into()),
            Ok(message) => return Ok(Some(message)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
