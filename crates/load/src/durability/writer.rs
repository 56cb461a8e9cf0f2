//! A round's writers: each has its own session and writes in its way until the connection is lost, the round is
//! ended, or the journal is full.
//!
//! Only what the server acknowledged goes to the journal; what is in flight when the plug is pulled may be on
//! disk or not.

mod writer_task;

use std::sync::Arc;
use std::time::Duration;

use smbscope_client::error::status_text;
use smbscope_client::{ClientError, Credential, Host, Session};
use smbscope_wire::status::Status;
use tokio::sync::watch;

use super::files;
use super::journal::{Kind, Record, Sender};
use super::plan::Plan;
use super::server::Identity;
use writer_task::WriterTask;

/// What all writers are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Write.
    Write,
    /// End after the requests in flight.
    End,
    /// The connection of one of them was lost.
    Lost,
}

/// How a round writes.
#[derive(Clone)]
pub struct Round {
    /// The server.
    pub host: Arc<Host>,
    /// The user of all writers.
    pub credential: Credential,
    /// The run.
    pub plan: Arc<Plan>,
    /// Its number, from 0.
    pub number: u32,
    /// Where acknowledged requests are recorded.
    pub journal: Sender,
    /// Time for a logon.
    pub logon_timeout: Duration,
    /// A server that does not answer for this long is lost: one without power sends no reset.
    pub silence: Duration,
    /// Least time between two Writes of one writer.
    pub gap: Duration,
}

/// Why a writer ended.
#[derive(Debug)]
pub enum End {
    /// The connection was lost, or the server did not answer.
    Lost(ClientError),
    /// The round was ended.
    Asked,
    /// The server or the share does not offer its way.
    NotOffered(&'static str),
    /// The server refused something.
    Refused(&'static str, Status),
    /// The journal has its largest size.
    JournalFull,
    /// The journal cannot be written: its file and the error of the system.
    JournalFailed(String),
}

impl End {
    /// In words, for the ways that did not run until the plug was pulled.
    pub fn text(&self) -> String {
        match self {
            End::Lost(error) => error.to_string(),
            End::Asked => "the round was ended".into(),
            End::NotOffered(why) => format!("not offered: {why}"),
            End::Refused(what, status) => format!("{what}: {}", status_text(*status)),
            End::JournalFull => "the journal is full (--journal-size)".into(),
            End::JournalFailed(error) => format!("the journal cannot be written: {error}"),
        }
    }
}

/// How a round began.
pub struct Started {
    /// The server before the plug is pulled.
    pub identity: Identity,
    /// Sessions, by writer.
    sessions: Vec<Session>,
}

/// Connects all writers and creates the round's folder. Nothing is recorded if that fails.
///
/// # Errors
/// The server cannot be reached, refuses the logon or the folder.
pub async fn start(round: &Round) -> Result<Started, ClientError> {
    let mut sessions = Vec::new();
    for _ in &round.plan.lanes {
        sessions.push(connect(round).await?);
    }
    let mut identity = None;
    if let Some(first) = sessions.first_mut() {
        identity = Some(Identity::of_server(first));
        let folder = round.plan.round_folder(round.number);
        if let Err(status) = files::make_folders(first, &folder).await? {
            return Err(ClientError::Protocol(format!(
                "{folder}: the folder cannot be made: {}: name a folder in which the user may write",
                status_text(status)
            )));
        }
    }
    let identity = identity.ok_or_else(|| ClientError::Protocol("there are no writers".into()))?;
    Ok(Started { identity, sessions })
}

/// A session of the round's user.
///
/// # Errors
/// The server cannot be reached, or refuses the logon.
pub async fn connect(round: &Round) -> Result<Session, ClientError> {
    let connecting =
        Session::connect(round.logon_timeout, round.host.clone(), &round.credential, 0, None);
    connecting.await.map_err(|failed| failed.error)
}

/// Writes until all writers ended; returns why, by writer. `phase` ends them; if one loses its connection, it is
/// set to [`Phase::Lost`].
pub async fn write(round: Round, started: Started, phase: watch::Sender<Phase>) -> Vec<End> {
    let now = round.host.clock.now();
    let begin = Record::event(Kind::Round, round.number, started.identity.start_time, now);
    round.journal.add(begin).await;
    let phase = Arc::new(phase);
    let mut tasks = Vec::new();
    for (number, session) in started.sessions.into_iter().enumerate() {
        let Some(lane) = round.plan.lanes.get(number).copied() else { continue };
        let (round, phase) = (round.clone(), phase.clone());
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        tasks.push(tokio::spawn(async move {
            let receiver = phase.subscribe();
            let end = WriterTask::new(round.clone(), session, lane, number, receiver).run().await;
            let (kind, value) = match &end {
                End::Lost(_) => {
                    phase.send_if_modified(|phase| {
                        let is_first = *phase == Phase::Write;
                        *phase = if is_first { Phase::Lost } else { *phase };
                        is_first
                    });
                    (Kind::Lost, 0)
                }
                End::NotOffered(_) => (Kind::NotOffered, 0),
                End::Refused(_, status) => (Kind::Refused, u64::from(status.0)),
                End::Asked | End::JournalFull | End::JournalFailed(_) => return end,
            };
            let event = Record::event(kind, round.number, value, round.host.clock.now());
            round.journal.add(Record { lane: number, ..event }).await;
            end
        }));
    }
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(task.await.unwrap_or(End::Asked));
    }
    ends
}
