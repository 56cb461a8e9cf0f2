//! `smbscope durability`: what survives when the plug is pulled.
//!
//! Owns the options, the prompt for a person, and where the report goes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use smbscope_client::clock::Clock;
use smbscope_client::{Config, Host, Session};
use smbscope_load::durability::plan::{Choice, FOLDER, Pattern, Plan, Way, random_run};
use smbscope_report::format;
use smbscope_report::pages::durability::{
    Durability as Page, durability_html, durability_json, durability_text,
};

use super::load::target::{Destination, Where, shell_word};
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::options::{Verbosity, duration, size};
use crate::output::Output;
use crate::pipeline::durability as pipeline;
use crate::pipeline::measure::{runtime, unless_interrupted};
use crate::subprocess;
use crate::terminal;

/// Prove what survives when a server loses its power.
///
/// Writes numbered blocks in every way an application has: plain, with a Flush after each Write, with a Flush before
/// Close, opened with write-through, Writes with the write-through flag, unbuffered, and with persistent handles where
/// the share is continuously available; appended, overwritten in random order, and as new files that are renamed over
/// old ones. What the server acknowledged is recorded in a journal on this machine, which is synced before it counts.
///
/// Then the plug of the server is pulled: by you, when smbscope asks for it, or by the command of --pull (an IPMI call,
/// a hypervisor's reset). When the server answers again, everything is read back. What was promised durable and is
/// missing, torn, stale or damaged is a fault (exit code 10). What was not promised and is missing shows how many seconds
/// of data the server keeps in memory. Restarting the service or the operating system proves little: caches survive.
///
/// Only files in a new folder, smbscope-durability in TARGET, are written. They are removed when a round has no fault. If it
/// has one, or ends before it was verified (an error, Ctrl-C, a kill of smbscope), they are left, and a message names the
/// folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope durability //fs.example/backup --user 'LAB\\backup' --password-file secret
  smbscope durability //fs.example/backup --after 60s --pull 'ipmitool -H bmc -f pw chassis power cycle' --rounds 20
  smbscope durability //fs.example/backup --way flush-close --way open-through --block 4KiB,1MiB --depth 1,8
  smbscope durability --verify //fs.example/backup --journal durability-4f2a.journal    # after a kill of the client
  smbscope durability //fs.example/backup --html backup.html")]
pub struct Durability {
    #[command(flatten)]
    pub place: Where,
    /// Do not write: read back what the journal of an earlier run says was acknowledged.
    #[arg(long, requires = "journal")]
    pub verify: bool,
    /// Journal of what was acknowledged, on this machine [default: durability-RUN.journal].
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Largest journal; each acknowledged request takes 64 bytes.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub journal_size: u64,
    #[command(flatten)]
    pub writes: Writes,
    #[command(flatten)]
    pub plug: Plug,
    /// Keep the files also if there is no fault.
    #[arg(long)]
    pub keep: bool,
    /// Also write a self-contained HTML page to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// What is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing options")]
pub struct Writes {
    /// Write only in this way: plain, flush-each, flush-close, open-through, write-through, unbuffered, persistent; can
    /// be repeated [default: all].
    #[arg(long, value_name = "WAY", value_parser = way)]
    pub way: Vec<Way>,
    /// Only in this order: append, overwrite, rename; can be repeated [default: all].
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub pattern: Vec<Pattern>,
    /// Block sizes, multiples of 512 bytes; the writers take them in turn.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "4KiB,64KiB,1MiB", value_parser = size)]
    pub block: Vec<u64>,
    /// Writes in flight, likewise in turn.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,4")]
    pub depth: Vec<u16>,
    /// Files of each writer.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub files: u32,
    /// Size of each file. When all files are full, the writers begin with the first one again.
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size)]
    pub file_size: u64,
    /// Most Writes per second of each writer; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub rate: u32,
}

/// The plug.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Plug options")]
pub struct Plug {
    /// Pull the plug with this command of the shell. Without it, a person is asked to.
    #[arg(long, value_name = "COMMAND")]
    pub pull: Option<String>,
    /// Write for this long before --pull.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub after: Duration,
    /// Repeat this many times.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// A server that does not answer for this long is gone: without power it closes no connection.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub silence: Duration,
    /// Wait this long for the server to answer again.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    pub wait: Duration,
    /// Time for a logon.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
}

fn way(text: &str) -> Result<Way, String> {
    Way::parse(text)
        .ok_or_else(|| format!("expected one of {}", Way::ALL.map(Way::name).join(", ")))
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(text)
        .ok_or_else(|| format!("expected one of {}", Pattern::ALL.map(Pattern::name).join(", ")))
}

/// Runs `smbscope durability`.
pub fn run(args: &Durability, verbosity: Verbosity) -> anyhow::Result<()> {
    let mut place = args.place.resolve()?;
    let config = Config { kerberos: place.kerberos.clone(), ..Config::default() };
    place.follow_links(&config, args.plug.timeout, verbosity)?;
    let target = args.place.target.clone().unwrap_or_else(|| place.target.unc());
    let page = if args.verify {
        verify(args, place, &target, verbosity)?
    } else {
        test(args, place, &target, verbosity)?
    };
    print(args, &page)?;
    match page.broken() {
        0 => Ok(()),
        broken => {
            let message = format!(
                "{} acknowledged durable writes are missing or damaged",
                format::count(broken)
            );
            Err(Failure::new(Code::NotDurable, message).into())
        }
    }
}

fn print(args: &Durability, page: &Page) -> anyhow::Result<()> {
    if let Some(path) = &args.html {
        let mut file = Output::file(path)?;
        file.text(&durability_html(page, env!("CARGO_PKG_VERSION")))?;
        file.finish()?;
    }
    let mut output = Output::stdout();
    let bold = output.bold();
    let width = if output.is_terminal() { terminal::width() } else { None };
    let text = match args.format {
        TextFormat::Text => durability_text(page, width, (&bold.0, bold.1)),
        TextFormat::Json => durability_json(page)? + "\n",
    };
    output.text(&text)?;
    output.finish()
}

/// Writes, loses the server, and verifies.
fn test(
    args: &Durability,
    place: Destination,
    target: &str,
    verbosity: Verbosity,
) -> anyhow::Result<Page> {
    let Destination { target: at, credentials, kerberos, .. } = place;
    let run = random_run().map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    let short = run.get(..8).unwrap_or_default();
    let journal = args.journal.clone();
    let journal = journal.unwrap_or_else(|| PathBuf::from(format!("durability-{short}.journal")));
    let folder = format!("{FOLDER}\\{short}");
    let folder = if at.folder.is_empty() { folder } else { format!("{}\\{folder}", at.folder) };
    let clock = Clock::start();
    let plan = Plan {
        run,
        target: target.to_owned(),
        folder,
        start_ns: clock.now(),
        lanes: choice(&args.writes)?.lanes(),
    };
    plan.check().map_err(Failure::usage)?;
    let verify_command = format!(
        "smbscope durability --verify {} --journal {}",
        args.place.words().join(" "),
        shell_word(&journal.display().to_string())
    );
    let rate = args.writes.rate;
    let gap = if rate == 0 { Duration::ZERO } else { Duration::from_secs(1) / rate };
    let (runtime, _) = runtime(0)?;
    runtime.block_on(async {
        let config = Config { kerberos, ..Config::default() };
        let host = Arc::new(Host::find(at, config, clock, false).await?);
        let job = pipeline::Job {
            host,
            credential: credentials.of_user(1),
            plan: Arc::new(plan),
            journal,
            journal_bytes: args.journal_size,
            logon_timeout: args.plug.timeout,
            silence: args.plug.silence,
            gap,
            rounds: args.plug.rounds,
            after: args.plug.after,
            wait: args.plug.wait,
            keep: args.keep,
            pull: args.plug.pull.clone().map(pull),
            verify_command,
        };
        let mut screen = Screen { verbosity, shown: Duration::ZERO };
        screen.say(&format!(
            "{} writers; files are in {} of the share, what is acknowledged is recorded in {}",
            job.plan.lanes.len(),
            job.plan.folder,
            job.journal.display()
        ));
        let outcome = pipeline::run(&job, &mut screen).await?;
        Ok(pipeline::page(target, &job.journal, &job.plan, outcome))
    })
}

fn choice(writes: &Writes) -> anyhow::Result<Choice> {
    let ways = if writes.way.is_empty() { Way::ALL.to_vec() } else { writes.way.clone() };
    let block_bytes: Vec<u32> =
        writes.block.iter().map(|bytes| u32::try_from(*bytes).unwrap_or(u32::MAX)).collect();
    if block_bytes.is_empty() || writes.depth.is_empty() {
        return Err(Failure::usage("--block and --depth need at least one value"));
    }
    let patterns =
        if writes.pattern.is_empty() { Pattern::ALL.to_vec() } else { writes.pattern.clone() };
    Ok(Choice {
        ways,
        patterns,
        block_bytes,
        depths: writes.depth.clone(),
        files: writes.files,
        file_bytes: writes.file_size,
    })
}

/// The command that pulls the plug.
fn pull(command: String) -> pipeline::Pull {
    Arc::new(move || subprocess::shell(&command, "--pull"))
}

/// Verifies a journal.
fn verify(
    args: &Durability,
    place: Destination,
    target: &str,
    verbosity: Verbosity,
) -> anyhow::Result<Page> {
    let Some(path) = &args.journal else {
        return Err(Failure::usage("--verify needs --journal FILE"));
    };
    // Read first: a wrong journal shows before a logon.
    let (journal, ledgers) = pipeline::read_ledgers(path, None)?;
    let Destination { target: at, credentials, kerberos, .. } = place;
    let (runtime, _) = runtime(0)?;
    runtime.block_on(unless_interrupted(async {
        let config = Config { kerberos, ..Config::default() };
        let host = Arc::new(Host::find(at, config, Clock::start(), false).await?);
        let connecting =
            Session::connect(args.plug.timeout, host, &credentials.of_user(1), 0, None).await;
        let mut session = connecting.map_err(|failed| failed.error)?;
        let mut screen = Screen { verbosity, shown: Duration::ZERO };
        let outcome =
            pipeline::verify_journal(&mut session, &journal, &ledgers, &mut screen).await?;
        session.close().await;
        Ok(pipeline::page(target, path, &journal.plan, outcome))
    }))
}

/// What is shown while a test runs.
struct Screen {
    verbosity: Verbosity,
    /// When progress was shown last, since the round's begin.
    shown: Duration,
}

/// Time between two lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(10);

impl pipeline::Observer for Screen {
    fn say(&mut self, text: &str) {
        self.verbosity.say(text);
    }

    fn progress(&mut self, recorded: u64, elapsed: Duration) {
        if elapsed < self.shown {
            self.shown = Duration::ZERO;
        }
        if elapsed - self.shown >= LINE_EVERY {
            self.shown = elapsed;
            self.verbosity.say(&format!(
                "{:.0} s: {} acknowledged requests are in the journal",
                elapsed.as_secs_f64(),
                format::count(recorded)
            ));
        }
    }

    fn prompt(&mut self, round: u32, rounds: u32) {
        // Shown even with --quiet: the test waits for it.
        anstream::eprintln!(
            "round {} of {rounds}: PULL THE PLUG of the server now or in some minutes (mains, not the power button), then let it start again; Ctrl-C ends without",
            round + 1
        );
    }
}

impl Screen {
    fn say(&self, text: &str) {
        self.verbosity.say(text);
    }
}
