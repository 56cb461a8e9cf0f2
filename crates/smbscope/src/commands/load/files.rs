//! `smbscope load prepare` and `load clean`: the users' files, several users at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use smbscope_client::clock::Clock;
use smbscope_client::{Config, Host, Session};
use smbscope_load::prepare::{self as work, Done, PrepareError};
use smbscope_load::run::users::{Credentials, Shard, home};
use smbscope_load::workload::Planner;
use smbscope_report::format;

use super::args::{Clean, Client, Prepare};
use super::target::Destination;
use crate::exit::{Code, Failure};
use crate::interrupt;
use crate::options::Verbosity;
use crate::pipeline::measure::preflight::check_last;
use crate::pipeline::measure::{runtime, unless_interrupted};
use crate::terminal;

/// Attempts per user if the connection is lost.
const ATTEMPTS: u32 = 5;
/// How often the progress bar is updated.
const REFRESH: Duration = Duration::from_millis(200);

/// State that all workers share.
struct Job {
    host: Arc<Host>,
    credentials: Credentials,
    planner: Planner,
    folder: String,
    todo: Mutex<VecDeque<u64>>,
    done: Mutex<Done>,
    bytes: AtomicU64,
    users: AtomicU64,
    clean: bool,
    timeout: Duration,
}

/// Creates the users' files.
pub fn prepare(args: &Prepare, verbosity: Verbosity) -> anyhow::Result<()> {
    let mut place = args.place.resolve()?;
    let config = args.client.config(place.kerberos.clone())?;
    place.follow_links(&config, args.client.timeout, verbosity)?;
    let (workload, _) = args.what.load()?;
    let planner = Planner::new(workload.into(), args.what.seed, args.what.scale()?);
    let users: Vec<u64> = args.shard.users(args.users).collect();
    let total: u64 = users.iter().map(|&user| planner.files().user_bytes(user)).sum();
    let begin = Instant::now();
    let job = Started { place, config, planner, users, clean: false };
    let (done, count) = run(job, &args.client, args.parallel, Some(total), verbosity)?;
    let seconds = begin.elapsed().as_secs_f64().max(1e-3);
    verbosity.say(&format!(
        "files of {} users: {} files created ({} in {seconds:.1} s, {}/s), {} folders created, {} {} there already, {} left over from runs removed",
        format::count(count),
        format::count(done.files),
        format::bytes(done.bytes),
        format::bytes((done.bytes as f64 / seconds) as u64),
        format::count(done.folders),
        format::count(done.kept),
        if done.kept == 1 { "entry was" } else { "entries were" },
        format::count(done.surplus),
    ));
    Ok(())
}

/// Removes the files that prepare and runs created.
pub fn clean(args: &Clean, verbosity: Verbosity) -> anyhow::Result<()> {
    let mut place = args.place.resolve()?;
    let config = args.client.config(place.kerberos.clone())?;
    place.follow_links(&config, args.client.timeout, verbosity)?;
    let (workload, _) = args.what.load()?;
    let planner = Planner::new(workload.into(), args.what.seed, args.what.scale()?);
    let users: Vec<u64> = Shard::ALL.users(args.users).collect();
    let job = Started { place, config, planner, users, clean: true };
    let (done, count) = run(job, &args.client, args.parallel, None, verbosity)?;
    let left = match done.kept {
        0 => String::new(),
        1 => "; 1 entry that smbscope did not create was kept".to_owned(),
        kept => format!("; {} entries that smbscope did not create were kept", format::count(kept)),
    };
    verbosity.say(&format!(
        "files of {} users: {} files and {} folders removed{left}",
        format::count(count),
        format::count(done.files),
        format::count(done.folders),
    ));
    Ok(())
}

/// The work to do.
struct Started {
    place: Destination,
    config: Config,
    planner: Planner,
    users: Vec<u64>,
    clean: bool,
}

fn run(
    started: Started,
    client: &Client,
    parallel: u16,
    total: Option<u64>,
    verbosity: Verbosity,
) -> anyhow::Result<(Done, u64)> {
    let (runtime, _) = runtime(0)?;
    let Destination { target, credentials, .. } = started.place;
    let config = started.config;
    let all = started.users.len() as u64;
    runtime.block_on(async {
        let folder = target.folder.clone();
        let host = Arc::new(Host::find(target, config, Clock::precise(), false).await?);
        if let Some(&last) = started.users.last().filter(|_| !started.clean) {
            let checking =
                check_last(client.timeout, host.clone(), &credentials, &started.planner, last);
            unless_interrupted(checking).await?;
        }
        let job = Arc::new(Job {
            host,
            credentials,
            planner: started.planner,
            folder,
            todo: Mutex::new(started.users.into()),
            done: Mutex::default(),
            bytes: AtomicU64::new(0),
            users: AtomicU64::new(0),
            clean: started.clean,
            timeout: client.timeout,
        });
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..u64::from(parallel).min(all) {
            workers.spawn(worker(job.clone()));
        }
        let bar = bar(verbosity, total, all);
        let mut failed: Option<anyhow::Error> = None;
        let mut ticks = tokio::time::interval(REFRESH);
        loop {
            tokio::select! {
                ended = workers.join_next() => match ended {
                    None => break,
                    Some(ended) => {
                        if let Err(error) = ended.map_err(anyhow::Error::from).and_then(|done| done) {
                            failed.get_or_insert(error);
                            job.todo.lock().unwrap_or_else(PoisonError::into_inner).clear();
                        }
                    }
                },
                _ = ticks.tick() => {
                    if interrupt::asked() {
                        workers.abort_all();
                    }
                    if let Some(bar) = &bar {
                        let users = job.users.load(Ordering::Relaxed);
                        bar.set_position(match total {
                            Some(_) => job.bytes.load(Ordering::Relaxed),
                            None => users,
                        });
                        bar.set_message(format!("{users} of {all} users"));
                    }
                }
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        if interrupt::asked() {
            let users = job.users.load(Ordering::Relaxed);
            let message = format!(
                "interrupted after {users} of {all} users; run it again to continue"
            );
            return Err(Failure::new(Code::Interrupted, message).into());
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let done = *job.done.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((done, all))
    })
}

/// Takes users until there are none.
async fn worker(job: Arc<Job>) -> anyhow::Result<()> {
    loop {
        let user = job.todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(user) = user else { return Ok(()) };
        let mut attempt = 0;
        let done = loop {
            attempt += 1;
            match one(&job, user).await {
                Ok(done) => break done,
                Err(error) if error.may_pass() && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(200) * attempt).await;
                }
                Err(error) => {
                    let name = job.credentials.of_user(user).name();
                    return Err(anyhow::Error::from(error).context(format!("user {name}")));
                }
            }
        };
        job.done.lock().unwrap_or_else(PoisonError::into_inner).add(&done);
        job.users.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does one user's files over a connection of its own.
async fn one(job: &Job, user: u64) -> Result<Done, PrepareError> {
    let credential = job.credentials.of_user(user);
    let host = job.host.clone();
    let connected = Session::connect(job.timeout, host, &credential, 0, None).await;
    let mut session = connected.map_err(|failed| failed.error)?;
    let home = home(&job.folder, user);
    let files = job.planner.files();
    let tell = |bytes| {
        job.bytes.fetch_add(bytes, Ordering::Relaxed);
    };
    let done = if job.clean {
        work::clean(&mut session, files, user, &home, || {}).await
    } else {
        work::prepare(&mut session, files, user, &home, tell).await
    };
    session.close().await;
    done
}

fn bar(verbosity: Verbosity, total: Option<u64>, users: u64) -> Option<ProgressBar> {
    if verbosity.quiet || verbosity.no_progress || !terminal::stderr_is_terminal() {
        return None;
    }
    let template = match total {
        Some(_) => {
            "{bar:24} {percent:>3}% {bytes} of {total_bytes}, {bytes_per_sec}, {msg}, {eta} left"
        }
        None => "{bar:24} {percent:>3}% {msg}, {eta} left",
    };
    let bar =
        ProgressBar::with_draw_target(Some(total.unwrap_or(users)), ProgressDrawTarget::stderr());
    // If indicatif rejects the template, it uses its own.
    Some(match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    })
}
