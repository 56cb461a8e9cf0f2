//! The durability test: rounds of writing, losing the server, waiting for it and reading back.
//!
//! The writers and the comparison are `smbscope_load`'s; what is shown meanwhile is the caller's ([`Observer`]).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smbscope_client::{ClientError, Credential, Host, Session};
use smbscope_load::durability::journal::{self, Journal, Kind, Record, Writer};
use smbscope_load::durability::ledger::Ledger;
use smbscope_load::durability::plan::Plan;
use smbscope_load::durability::result::{RoundResult, Tally};
use smbscope_load::durability::risk::interval;
use smbscope_load::durability::server::{Identity, Return};
use smbscope_load::durability::verify::{clean, verify};
use smbscope_load::durability::writer::{self, End, Phase, Round, Started};
use smbscope_report::durability::{BrokenPromise, Durability, DurableWay};
use tokio::sync::watch;

use crate::exit::{Code, Failure};
use crate::interrupt;

/// How often the state is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long after a successful --pull the server may still answer, in addition to the silence.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two attempts to reach a server that was lost.
const RETRY: Duration = Duration::from_secs(1);
/// Most broken promises that a report lists.
const LISTED: usize = 10_000;

/// The work.
pub struct Job {
    pub host: Arc<Host>,
    pub credential: Credential,
    pub plan: Arc<Plan>,
    pub journal: PathBuf,
    pub journal_bytes: u64,
    pub logon_timeout: Duration,
    pub silence: Duration,
    pub gap: Duration,
    pub rounds: u32,
    /// Time before the plug is pulled by `pull`.
    pub after: Duration,
    /// How long a server that was lost may be away.
    pub wait: Duration,
    /// Whether the files are kept.
    pub keep: bool,
    /// Pulls the plug; `None`: a person does.
    pub pull: Option<Pull>,
    /// The command that verifies the journal later.
    pub verify_command: String,
}

/// Pulls the plug.
pub type Pull = Arc<dyn Fn() -> anyhow::Result<()> + Send + Sync>;

/// Follows a test.
pub trait Observer {
    /// Something happened.
    fn say(&mut self, text: &str);
    /// Writers run: acknowledged requests that are in the journal, and for how long.
    fn progress(&mut self, recorded: u64, elapsed: Duration);
    /// A person has to pull the plug now.
    fn prompt(&mut self, round: u32, rounds: u32);
}

/// What a test found.
pub struct Outcome {
    pub results: Vec<RoundResult>,
    pub notes: Vec<String>,
}

/// Writes, waits for the plug, and verifies, as often as there are rounds.
pub async fn run(job: &Job, observer: &mut dyn Observer) -> anyhow::Result<Outcome> {
    let writer = Writer::create(&job.journal, &job.plan, job.journal_bytes)
        .map_err(|error| Failure::new(Code::Output, error.to_string()))?;
    let mut outcome = Outcome { results: Vec::new(), notes: Vec::new() };
    for number in 0..job.rounds {
        play(job, number, &writer, &mut outcome, observer).await?;
    }
    writer.finish().map_err(|error| Failure::new(Code::Output, error.to_string()))?;
    if job.keep || outcome.results.iter().any(|result| result.broken() > 0) {
        note(&mut outcome.notes, format!("the files are kept: {}", kept(&job.plan)));
    }
    Ok(outcome)
}

/// Where the files of a run are.
fn kept(plan: &Plan) -> String {
    format!("{} of the share of {}", plan.folder, plan.target)
}

/// One round.
async fn play(
    job: &Job,
    number: u32,
    writer: &Writer,
    outcome: &mut Outcome,
    observer: &mut dyn Observer,
) -> anyhow::Result<()> {
    let round = Round {
        host: job.host.clone(),
        credential: job.credential.clone(),
        plan: job.plan.clone(),
        number,
        journal: writer.sender().clone(),
        logon_timeout: job.logon_timeout,
        silence: job.silence,
        gap: job.gap,
    };
    let started = writer::start(&round).await?;
    let before = started.identity;
    // From here on there are files.
    let left = |error: anyhow::Error| with_files(job, &error);
    let ends = write(job, &round, started, observer).await.map_err(left)?;
    for (end, lane) in ends.iter().zip(&job.plan.lanes) {
        if matches!(end, End::NotOffered(_) | End::Refused(..)) {
            note(&mut outcome.notes, format!("{}: {}", lane.way.name(), end.text()));
        }
    }
    let away = Instant::now();
    let mut session = come_back(job, &round, observer).await.map_err(left)?;
    let after = Identity::of_server(&session);
    let back = Record::event(Kind::Back, number, after.start_time, job.host.clock.now());
    round.journal.add(back).await;
    let (sentence, restarted) = returned(before.compare(&after));
    observer.say(&format!(
        "the server answers again after {:.0} s: {sentence}",
        away.elapsed().as_secs_f64()
    ));
    if restarted != Return::Restarted {
        note(&mut outcome.notes, format!("the server answered again: {sentence}"));
    }
    settle(&round).await.map_err(left)?;
    let ledger = ledgers(job, Some(number)).map_err(left)?.1.remove(&number).unwrap_or_default();
    let result = verify(&mut session, &job.plan, &ledger, |_| ())
        .await
        .map_err(|error| left(error.into()))?;
    let event = |kind, value| Record::event(kind, number, value, job.host.clock.now());
    round.journal.add(event(Kind::Verified, result.broken())).await;
    if !job.keep && result.broken() == 0 {
        // A client that is killed meanwhile must not report removed files as lost.
        round.journal.add(event(Kind::Cleaning, 0)).await;
        settle(&round).await.map_err(left)?;
        clean(&mut session, &job.plan, &ledger).await.map_err(|error| left(error.into()))?;
    }
    session.close().await;
    observer.say(&format!(
        "round {} of {}: {} broken promises",
        number + 1,
        job.rounds,
        result.broken()
    ));
    outcome.results.push(result);
    Ok(())
}

/// Waits until the journal has everything.
async fn settle(round: &Round) -> anyhow::Result<()> {
    if round.journal.settle().await {
        Ok(())
    } else {
        Err(journal_failed(round.journal.failed().unwrap_or("its thread ended")))
    }
}

fn journal_failed(error: &str) -> anyhow::Error {
    Failure::new(Code::Output, format!("the journal cannot be written: {error}")).into()
}

/// An error after which the files of the run are still there: where they are, and what to do with them.
fn with_files(job: &Job, error: &anyhow::Error) -> anyhow::Error {
    let message = format!(
        "{error:#}\nthe files of the run are left: {}; verify them with `{}`, or remove the folder",
        kept(&job.plan),
        job.verify_command
    );
    Failure::new(crate::exit::code_of(error), message).into()
}

fn note(notes: &mut Vec<String>, text: String) {
    if !notes.contains(&text) {
        notes.push(text);
    }
}

/// What the comparison of two identities says.
fn returned(how: Return) -> (&'static str, Return) {
    let text = match how {
        Return::Restarted => "it has a new start time, so it was started again",
        Return::OtherGuid => "it has another GUID: it was started again, or it is another server",
        Return::SameStart => {
            "its start time is the same: it was not started again, only the connection was lost; its cache may have survived, so this proves little"
        }
        Return::Unknown => {
            "it does not say when it was started (Samba, ksmbd and newer Windows servers do not); check that it really lost its power"
        }
    };
    (text, how)
}

/// Writes until the server is lost.
async fn write(
    job: &Job,
    round: &Round,
    started: Started,
    observer: &mut dyn Observer,
) -> anyhow::Result<Vec<End>> {
    let (phase, mut seen) = watch::channel(Phase::Write);
    let ending = phase.clone();
    let mut writing = tokio::spawn(writer::write(round.clone(), started, phase));
    let begin = Instant::now();
    if job.pull.is_none() {
        observer.prompt(round.number, job.rounds);
    }
    let mut pulling: Option<tokio::task::JoinHandle<anyhow::Result<()>>> = None;
    let mut pulled_at: Option<Instant> = None;
    let mut said_full = false;
    let ends = loop {
        tokio::select! {
            ends = &mut writing => break ends?,
            () = tokio::time::sleep(TICK) => {}
        }
        let mut failed = None;
        if interrupt::asked() {
            let message =
                format!("interrupted; what was acknowledged is in {}", job.journal.display());
            failed = Some(Failure::new(Code::Interrupted, message).into());
        }
        if pulling.as_ref().is_some_and(|pulling| pulling.is_finished())
            && let Some(done) = pulling.take()
        {
            failed = failed.or(done.await?.err());
            pulled_at = Some(Instant::now());
        }
        if pulled_at.is_some_and(|at| at.elapsed() > job.silence + PATIENCE) {
            let message =
                "--pull succeeded, but the server still answers: it did not lose its power";
            failed = failed.or_else(|| Some(anyhow::anyhow!(message)));
        }
        if let Some(failed) = failed {
            ending.send_replace(Phase::End);
            writing.await?;
            return Err(failed);
        }
        observer.progress(round.journal.synced(), begin.elapsed());
        if *seen.borrow_and_update() == Phase::Lost {
            continue;
        }
        if round.journal.is_full() && !said_full {
            said_full = true;
            observer.say(
                "the journal is full: writers end; pull the plug earlier, or use --journal-size",
            );
        }
        if let Some(pull) = &job.pull
            && pulling.is_none()
            && pulled_at.is_none()
            && begin.elapsed() >= job.after
        {
            observer.say("pulling the plug");
            let pull = pull.clone();
            pulling = Some(tokio::task::spawn_blocking(move || pull()));
        }
    };
    if let Some(pulling) = pulling {
        pulling.await??;
    }
    if !ends.iter().any(|end| matches!(end, End::Lost(_))) {
        if let Some(error) = round.journal.failed() {
            return Err(journal_failed(error));
        }
        let reasons: Vec<String> = ends.iter().map(End::text).collect();
        let first = reasons.first().cloned().unwrap_or_default();
        return Err(anyhow::anyhow!("all writers ended before the plug was pulled: {first}"));
    }
    observer.say(&lost(&ends));
    Ok(ends)
}

/// How the loss of the server showed.
fn lost(ends: &[End]) -> String {
    let first = ends.iter().find(|end| matches!(end, End::Lost(_)));
    let reason = first.map(End::text).unwrap_or_default();
    format!("the server is gone ({reason}); waiting until it answers again")
}

/// Waits until the server answers again.
async fn come_back(
    job: &Job,
    round: &Round,
    observer: &mut dyn Observer,
) -> anyhow::Result<Session> {
    let begin = Instant::now();
    let mut minutes = 0;
    loop {
        let error = match writer::connect(round).await {
            Ok(session) => return Ok(session),
            Err(error @ ClientError::Logon(_)) => return Err(error.into()),
            Err(error) => error,
        };
        interrupt::check()?;
        if begin.elapsed() >= job.wait {
            let message = format!(
                "the server does not answer after {:.0} s ({error})",
                begin.elapsed().as_secs_f64()
            );
            return Err(Failure::new(Code::ServerGone, message).into());
        }
        if begin.elapsed().as_secs() / 60 > minutes {
            minutes = begin.elapsed().as_secs() / 60;
            observer.say(&format!("still waiting after {minutes} min: {error}"));
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The rounds of a journal: one of them, or all.
fn ledgers(job: &Job, only: Option<u32>) -> anyhow::Result<(Journal, BTreeMap<u32, Ledger>)> {
    read_ledgers(&job.journal, only)
}

/// Reads a journal: its plan and its rounds.
pub fn read_ledgers(
    path: &std::path::Path,
    only: Option<u32>,
) -> anyhow::Result<(Journal, BTreeMap<u32, Ledger>)> {
    let mut rounds = BTreeMap::new();
    let read = journal::read(path, |plan, record| {
        if only.is_none_or(|only| only == record.round) {
            let new = || Ledger::new(plan, record.round);
            rounds.entry(record.round).or_insert_with(new).add(plan, &record);
        }
    });
    let code = |error: &journal::JournalError| match error {
        journal::JournalError::Io { .. } => Code::Input,
        _ => Code::NotRecognised,
    };
    let journal = read.map_err(|error| Failure::new(code(&error), error.to_string()))?;
    Ok((journal, rounds))
}

/// Verifies what a journal says, after the client or the server went away.
pub async fn verify_journal(
    session: &mut Session,
    journal: &Journal,
    ledgers: &BTreeMap<u32, Ledger>,
    observer: &mut dyn Observer,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome { results: Vec::new(), notes: Vec::new() };
    if journal.cut_bytes > 0 {
        outcome.notes.push(format!(
            "the journal ends with an incomplete record ({} bytes), as after a kill of the client: it does not count",
            journal.cut_bytes
        ));
    }
    for (number, ledger) in ledgers {
        if ledger.cleaning {
            observer.say(&format!(
                "round {}: was verified, and smbscope removed its files; if it was killed meanwhile, the others are left: {}",
                number + 1,
                kept(&journal.plan)
            ));
            continue;
        }
        let result = verify(session, &journal.plan, ledger, |_| ()).await?;
        if !result.has_folder && ledger.verified == Some(0) {
            observer.say(&format!("round {}: was verified, and its files removed", number + 1));
            continue;
        }
        if !result.has_folder {
            outcome.notes.push(format!(
                "round {}: the share has no file of it: is this the share that was written to ({})?",
                number + 1,
                journal.plan.target
            ));
        }
        outcome.results.push(result);
    }
    if outcome.results.is_empty() {
        let message = "nothing to verify: the journal has no acknowledged writes, or all rounds were verified and their files removed";
        return Err(Failure::new(Code::NoMatch, message).into());
    }
    Ok(outcome)
}

/// What is shown of a test.
pub fn page(target: &str, journal: &std::path::Path, plan: &Plan, outcome: Outcome) -> Durability {
    let Outcome { results, notes } = outcome;
    let mut ways: BTreeMap<_, Tally> = BTreeMap::new();
    let mut test = Durability {
        target: target.to_owned(),
        run: plan.run.clone(),
        journal: journal.display().to_string(),
        rounds: results.len() as u64,
        rounds_broken: results.iter().filter(|result| result.broken() > 0).count() as u64,
        notes,
        ..Durability::default()
    };
    for result in &results {
        let last = result.losses.iter().filter(|loss| loss.is_broken);
        for loss in last.take(LISTED.saturating_sub(test.losses.len())) {
            test.losses.push(broken(plan, result, loss));
        }
        for (way, tally) in &result.ways {
            ways.entry(*way).or_default().add(tally);
        }
        let has_reason = |notes: &[String], way: &str| {
            notes.iter().any(|note| note.starts_with(&format!("{way}: not offered")))
        };
        for way in &result.not_offered {
            if has_reason(&test.notes, way.name()) {
                continue;
            }
            note(
                &mut test.notes,
                format!("{}: not offered by the server or the share", way.name()),
            );
        }
        for (way, status) in &result.refused {
            let status =
                smbscope_client::error::status_text(smbscope_wire::status::Status(*status));
            note(
                &mut test.notes,
                format!("{}: the server refused a request: {status}", way.name()),
            );
        }
    }
    test.cache_age_ns = ways.values().flat_map(|tally| tally.lost_ages_ns.iter().copied()).max();
    test.ways =
        ways.into_iter().map(|(way, tally)| row(way.name(), way.description(), tally)).collect();
    let unpromised =
        test.ways.iter().map(|way| way.writes - way.promised.min(way.writes)).sum::<u64>();
    if test.cache_age_ns.is_none() && unpromised > 0 {
        test.notes.push(format!(
            "of {} writes without a promise none was lost: the caches survived, or were written before the plug was pulled; the test proves little",
            smbscope_report::format::count(unpromised)
        ));
    }
    if test.ways.iter().any(|way| way.read_errors > 0) {
        test.notes.push("some blocks could not be read: they count as damaged".into());
    }
    test.notes.push(format!(
        "a promise is fresh if it was made within {} s before the last reply: older data had time to reach the disk without it",
        smbscope_load::durability::result::FRESH_NS / 1_000_000_000
    ));
    test
}

fn broken(
    plan: &Plan,
    result: &RoundResult,
    loss: &smbscope_load::durability::result::Loss,
) -> BrokenPromise {
    let lane = plan.lanes.get(usize::from(loss.lane));
    let bytes = lane.map_or(0, |lane| u64::from(lane.block_bytes));
    let promised_ns = loss.write.promised_ns.unwrap_or(loss.write.acked_ns);
    BrokenPromise {
        round: result.round,
        way: lane.map_or("", |lane| lane.way.name()).to_owned(),
        path: plan.file(result.round, loss.lane, loss.file),
        offset_bytes: u64::from(loss.write.block) * bytes,
        bytes,
        how: loss.how.name().to_owned(),
        sequence: loss.write.sequence,
        acknowledged_ns: loss.write.acked_ns,
        age_ns: result.last_ack_ns.saturating_sub(promised_ns),
    }
}

fn row(way: &str, description: &str, mut tally: Tally) -> DurableWay {
    tally.lost_ages_ns.sort_unstable();
    let age = |share: f64| {
        let ages = &tally.lost_ages_ns;
        let rank = (share * ages.len() as f64).ceil() as usize;
        ages.get(rank.saturating_sub(1)).copied()
    };
    let by = |counts: &BTreeMap<_, u64>| {
        let named = |(how, count): (&smbscope_load::durability::judge::How, &u64)| {
            (how.name().to_owned(), *count)
        };
        counts.iter().map(named).collect()
    };
    DurableWay {
        way: way.to_owned(),
        description: description.to_owned(),
        rounds: tally.rounds,
        rounds_broken: tally.rounds_broken,
        writes: tally.writes,
        bytes: tally.bytes,
        promised: tally.promised,
        checked: tally.checked,
        fresh: tally.fresh,
        broken: tally.broken(),
        broken_by: by(&tally.broken),
        risk: interval(tally.broken(), tally.checked).map(|risk| (risk.low, risk.high)),
        lost: tally.lost(),
        lost_by: by(&tally.lost),
        lost_bytes: tally.lost_bytes,
        lost_age_ns_p50: age(0.5),
        lost_age_ns_p95: age(0.95),
        lost_age_ns_max: age(1.0),
        reordered_in_file: tally.reordered_in_file,
        reordered_across_files: tally.reordered_across_files,
        torn_in_flight: tally.torn_in_flight,
        renames: tally.renames,
        renames_lost: tally.renames_lost,
        rename_age_ns_max: tally.rename_ages_ns.iter().copied().max(),
        renames_before_data: tally.renames_before_data,
        read_errors: tally.read_errors,
    }
}
