//! What a recording, a capture and a live server say about a baseline: the facts of a judgement, the answers to its
//! questions, and the settings that are visible on the wire.

use std::collections::BTreeMap;
use std::time::Duration;

use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::crypto::Calibration;
use smbscope_analysis::summary::Options;
use smbscope_client::clock::Clock;
use smbscope_client::{Config, Host, Target, ask};
use smbscope_plan::baseline::cost::{Answer, Facts, Question};
use smbscope_plan::baseline::read::{ServerOnWire, ShareOnWire};
use smbscope_report::baseline::{baseline_facts, baseline_numbers};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::filter::{Filter, ShareName};
use smbscope_tables::tables::{Connection, Tree};
use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};

use super::forecast::{Request, forecast};
use super::measure::runtime;
use super::pass::{Analysis, Monitor, pass};
use super::summarize::summarize;
use crate::exit::{Code, Failure};

/// Time for the answer of a server that is asked.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Servers and shares of a capture whose settings are kept.
const SERVERS_MAX: usize = 64;
const SHARES_MAX: usize = 1_024;

/// A recording that can be read again.
pub struct Recording<'a> {
    pub open: &'a dyn Fn() -> anyhow::Result<Source>,
    pub calibration: Option<Calibration>,
}

/// What must be known of a recording.
pub fn facts(source: &Source, monitor: &dyn Monitor) -> anyhow::Result<Facts> {
    let (report, _) = summarize(source, Options::default(), None, monitor)?;
    if report.totals.tally.operations == 0 {
        return Err(Failure::usage("--recording: it has no operations"));
    }
    Ok(baseline_facts(&report))
}

fn dialect(name: &str) -> Option<u16> {
    let known = [0x0202, 0x0210, 0x0300, 0x0302, 0x0311];
    known.into_iter().find(|number| Dialect(*number).name() == Some(name))
}

/// Answers to the questions of a judgement, each by a replay.
///
/// # Errors
///
/// If the recording cannot be read; what cannot be predicted is an answer.
pub fn answers(
    questions: &[Question],
    facts: &Facts,
    recording: &Recording<'_>,
    monitor: &dyn Monitor,
) -> anyhow::Result<Vec<Answer>> {
    questions.iter().map(|question| answer(question, facts, recording, monitor)).collect()
}

fn answer(
    question: &Question,
    facts: &Facts,
    recording: &Recording<'_>,
    monitor: &dyn Monitor,
) -> anyhow::Result<Answer> {
    let mut changes = Vec::new();
    for text in &question.changes {
        match text.parse::<Change>() {
            Ok(change) => changes.push(change),
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    let mut source = (recording.open)()?;
    if !question.shares.is_empty() {
        let shares = question.shares.iter().filter_map(|share| share.parse::<ShareName>().ok());
        source.set_filter(Filter { shares: shares.collect(), ..Filter::default() });
    }
    let request = Request { changes, calibration: recording.calibration.clone(), in_detail: false };
    Ok(match forecast(&mut source, request, monitor) {
        Ok(forecast) => Ok(baseline_numbers(&forecast, facts.moved_bytes(question))),
        Err(error) => Err(format!("{error:#}")),
    })
}

/// What the servers of a capture or dataset show on the wire.
pub fn on_wire(
    source: &Source,
    name: &str,
    monitor: &dyn Monitor,
) -> anyhow::Result<Vec<ServerOnWire>> {
    let mut seen = Seen::default();
    pass(source, &mut [&mut seen], monitor)?;
    Ok(seen.finish(name))
}

/// Connections and trees.
#[derive(Default)]
struct Seen {
    /// The connection with the most operations of each server.
    servers: BTreeMap<String, Connection>,
    trees: BTreeMap<String, Tree>,
}

impl Seen {
    fn finish(self, name: &str) -> Vec<ServerOnWire> {
        let shares: Vec<_> = self.trees.into_values().filter_map(|row| share(&row)).collect();
        let only = self.servers.len() == 1;
        let server = |(address, row): (String, Connection)| ServerOnWire {
            file: if only { name.to_owned() } else { format!("{name}, server {address}") },
            shares: if only { shares.clone() } else { Vec::new() },
            ..server(&row)
        };
        self.servers.into_iter().map(server).collect()
    }
}

impl Analysis for Seen {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Connections, Table::Trees]
    }

    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Connections(rows) => {
                for row in rows.iter().filter(|row| row.dialect.is_some()) {
                    let is_more = self
                        .servers
                        .get(&row.server)
                        .is_none_or(|known| known.operations < row.operations);
                    let has_room = self.servers.len() < SERVERS_MAX;
                    if is_more && (has_room || self.servers.contains_key(&row.server)) {
                        self.servers.insert(row.server.clone(), row.clone());
                    }
                }
            }
            Part::Trees(rows) => {
                for row in rows.iter().filter(|row| row.share_flags.is_some()) {
                    if let Some(share) =
                        row.share.as_ref().filter(|_| self.trees.len() < SHARES_MAX)
                    {
                        self.trees.insert(share.to_lowercase(), row.clone());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What a connection's Negotiate response said.
fn server(row: &Connection) -> ServerOnWire {
    let small = |value: Option<u64>| value.and_then(|value| u32::try_from(value).ok());
    let cipher = |name: &str| (1..=4).find(|number| CipherId(*number).name() == Some(name));
    let signing = |name: &str| (0..=2).find(|number| SigningId(*number).name() == Some(name));
    let dialect = row.dialect.as_deref().and_then(dialect);
    let negotiates = dialect == Some(Dialect::SMB_3_1_1.0);
    ServerOnWire {
        // Signing enabled is set in every response of SMB2 (MS-SMB2 section 2.2.4).
        security_mode: row.signing_required.map(|required| 1 | if required { 2 } else { 0 }),
        dialect,
        capabilities: small(row.server_capabilities),
        max_transact_bytes: small(row.max_transact_bytes),
        max_read_bytes: small(row.max_read_bytes),
        max_write_bytes: small(row.max_write_bytes),
        cipher: row.cipher.as_deref().and_then(cipher).filter(|_| negotiates),
        signing_algorithm: row
            .signing_algorithm
            .as_deref()
            .and_then(signing)
            .filter(|_| negotiates),
        ..ServerOnWire::default()
    }
}

fn share(row: &Tree) -> Option<ShareOnWire> {
    let name = row.share.as_ref()?.rsplit('\\').next()?.to_owned();
    Some(ShareOnWire {
        name,
        flags: u32::try_from(row.share_flags?).ok()?,
        capabilities: u32::try_from(row.capabilities.unwrap_or(0)).ok()?,
    })
}

/// What a live server answers to a Negotiate, without a logon. `text` is `//host[:port]`.
pub fn asked(text: &str) -> anyhow::Result<ServerOnWire> {
    let address = text.trim_end_matches(['/', '\\']);
    // A Negotiate names no share, but the parser wants one.
    let target = Target::parse(&format!("{address}/IPC$"))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let (runtime, _) = runtime(0)?;
    let answer = runtime.block_on(async {
        let host = Host::find(target, Config::default(), Clock::start(), false).await?;
        ask(ANSWER_LIMIT, &host).await
    });
    let answer = answer
        .map_err(|error| Failure::new(Code::Input, format!("{text}: not answered: {error}")))?;
    let negotiates = answer.dialect == Dialect::SMB_3_1_1;
    Ok(ServerOnWire {
        file: text.to_owned(),
        security_mode: Some(answer.security_mode.0),
        dialect: Some(answer.dialect.0),
        capabilities: Some(answer.capabilities.0),
        max_transact_bytes: Some(answer.max_transact_bytes),
        max_read_bytes: Some(answer.max_read_bytes),
        max_write_bytes: Some(answer.max_write_bytes),
        cipher: answer.cipher.map(|cipher| cipher.0).filter(|_| negotiates),
        signing_algorithm: negotiates.then_some(answer.signing.0),
        ..ServerOnWire::default()
    })
}
