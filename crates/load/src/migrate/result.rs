//! The end of a migration: its last rows, and the outcome.

use std::time::Duration;

use sha2::{Digest, Sha256};
use smbscope_client::multichannel::ChannelState;
use smbscope_tables::Part;
use smbscope_tables::run::{DONE, FAILED, MEASURED, Scenario, Step};

use super::run::{Mover, USER, Window};
use super::{ChannelOutcome, MigrateError, MigrationOutcome, MigrationPlan, Protection, Verified};
use crate::fileset::content;

impl Mover<'_> {
    /// Closes the session, and makes the rows and the outcome.
    pub(super) async fn end(mut self, moved: Result<(), MigrateError>) -> MigrationOutcome {
        let trouble = match moved {
            Err(error) => Some(error.to_string()),
            Ok(()) if self.is_interrupted() => Some("interrupted".to_owned()),
            Ok(()) => None,
        };
        // What happened while the last requests were answered one by one.
        while let Some(event) = self.channels.kept_event() {
            self.event(event);
        }
        let (recorder, session_id) = (&self.plan.recorder, self.channels.session_id());
        let states = self.channels.states();
        for (channel, to) in &self.wanted {
            if states.iter().all(|state| state.channel != *channel) {
                let reason = "the transfer ended before the server had bound it";
                self.refused.push((*to, reason.to_owned()));
            }
        }
        for one in &mut self.interfaces {
            let address = one.judged.offered.address.map(|address| address.to_string());
            one.channels =
                states.iter().filter(|state| Some(&state.server.0) == address.as_ref()).count()
                    as u64;
        }
        if let Some(first) = states.first() {
            let rows = self.interfaces.iter();
            let rows: Vec<_> =
                rows.filter_map(|one| one.row(recorder.recording(), session_id, first)).collect();
            if !rows.is_empty() {
                recorder.part(Part::Interfaces(rows));
            }
        }
        let protection = protection(self.channels.negotiated());
        let window = self.window.take();
        let ended = self.channels.close().await;
        self.timeline.rows(&ended.rows);
        let (signed, sealed) = ended
            .connections
            .iter()
            .fold((0, 0), |sum, link| (sum.0 + link.signed, sum.1 + link.encrypted));
        let first_connection = ended.connections.first().map(|link| link.connection);
        let operations: u64 = ended.connections.iter().map(|link| link.operations).sum();
        recorder.ended(USER, ended, false);
        self.timeline.finish(recorder);
        if let Some(window) = &window {
            let scenario = Scenario {
                connection: first_connection,
                operations,
                outcome: if trouble.is_none() { DONE } else { FAILED }.to_owned(),
                status_name: trouble.clone(),
                ..scenario(self.plan, window)
            };
            recorder.scenario(scenario, Vec::new());
            recorder.part(Part::Steps(vec![step(self.plan, window, trouble.is_some())]));
        }
        let checks_any = self.plan.verify && trouble.is_none();
        let verified = checks_any.then(|| Verified {
            bytes: self.plan.migration.bytes * u64::from(self.plan.migration.streams),
            different: self.different,
            different_blocks: self.different_blocks,
            sha256: Vec::new(),
        });
        let verified = match verified {
            Some(verified) => Some(with_hashes(verified, self.plan).await),
            None => None,
        };
        let lost = &self.lost;
        let outcome_of = |state: &ChannelState, window: Option<&Window>| {
            let moved = window.and_then(|window| {
                window.channels.iter().find(|(channel, _)| *channel == state.channel)
            });
            let then = window.and_then(|window| {
                window.states.iter().find(|then| then.channel == state.channel)?.tcp
            });
            ChannelOutcome {
                moved_bytes: moved.map_or(0, |(_, bytes)| *bytes),
                retransmissions: then.map(|tcp| tcp.retransmissions),
                round_trip_ns: then.map(|tcp| tcp.round_trip_ns),
                lost: lost.get(&state.channel).cloned(),
                state: state.clone(),
            }
        };
        let channels = states.iter().map(|state| outcome_of(state, window.as_ref())).collect();
        let protection = Protection {
            // A session that does not sign still signs its tree connect.
            signing: protection.signing.filter(|_| 2 * signed > operations && sealed == 0),
            cipher: protection.cipher.filter(|_| sealed > 0),
            ..protection
        };
        MigrationOutcome {
            bytes: window.as_ref().map_or(0, |window| window.bytes),
            took: window.as_ref().map_or(Duration::ZERO, |window| window.took),
            window: window.as_ref().map_or((0, 0), |window| (window.begin, window.end)),
            cpu: window.as_ref().and_then(|window| window.cpu),
            flush: self.flush,
            channels,
            interfaces: self.interfaces,
            not_listed: self.not_listed,
            refused: self.refused,
            repeated: self.repeated,
            verified,
            trouble,
            protection,
        }
    }
}

fn protection(negotiated: &smbscope_client::Negotiated) -> Protection {
    Protection {
        dialect: negotiated.dialect.name().map(str::to_owned),
        signing: negotiated.signing.name().map(str::to_owned),
        cipher: negotiated.cipher.and_then(|cipher| cipher.name()).map(str::to_owned),
    }
}

fn scenario(plan: &MigrationPlan, window: &Window) -> Scenario {
    Scenario {
        scenario_run: USER,
        step: 1,
        user_number: USER,
        user: Some(plan.credential.name()),
        scenario: "Migrate".to_owned(),
        phase: MEASURED.to_owned(),
        scheduled_at: window.begin,
        started_at: Some(window.begin),
        ended_at: Some(window.end),
        late_ns: Some(0),
        response_ns: Some(window.end - window.begin),
        ..Scenario::default()
    }
}

fn step(plan: &MigrationPlan, window: &Window, failed: bool) -> Step {
    let recording = plan.recorder.recording().to_owned();
    Step {
        run: recording.clone(),
        recording,
        step: 1,
        users: 1,
        users_here: 1,
        start: window.begin,
        end: window.end,
        scheduled: 1,
        started: 1,
        on_time: 1,
        completed: u64::from(!failed),
        failed: u64::from(failed),
        operations: Some(window.requests),
        transferred_bytes: Some(window.bytes),
        server_gone: Some(false),
        ended_early: failed,
        ..Step::default()
    }
}

/// Adds the hashes of the contents that the files should have.
async fn with_hashes(mut verified: Verified, plan: &MigrationPlan) -> Verified {
    for stream in plan.migration.streams(plan.seed) {
        let hashing = tokio::task::spawn_blocking(move || {
            let mut hash = Sha256::new();
            let mut buffer = vec![0; 1 << 20];
            let mut offset = 0;
            while offset < stream.file.bytes {
                let length = (stream.file.bytes - offset).min(buffer.len() as u64);
                let Some(piece) = buffer.get_mut(..length as usize) else { break };
                content(&stream.file, offset, piece);
                hash.update(&*piece);
                offset += length;
            }
            let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            (stream.path, hash)
        });
        if let Ok(pair) = hashing.await {
            verified.sha256.push(pair);
        }
    }
    verified
}
