//! The interactive screen: drawn once per interval and after each key; restores the terminal at the end.
//!
//! A separate thread draws and reads keys, so that neither waits for packets; the caller's thread collects. They
//! share the current numbers and a status.

use std::io::Stdout;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use arrow::array::RecordBatch;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use smbscope_analysis::live::Live;

use super::draw::{self, Shown, Status};
use super::state::{Asked, State};
use super::{Limits, finished};
use crate::interrupt;
use crate::pipeline::record::collector::Collector;

/// How often the drawing thread checks whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// State of both threads.
struct Shared {
    live: Mutex<Live>,
    status: Mutex<Status>,
    /// Number of complete intervals.
    intervals: AtomicU64,
    /// Whether collecting has ended.
    is_over: AtomicBool,
}

/// Runs the screen until it is asked to stop; returns lines to print once the terminal is restored.
pub fn run(
    collector: &mut Collector,
    live: Live,
    what: &str,
    state: State,
    limits: &Limits,
) -> anyhow::Result<Vec<String>> {
    let screen = Screen::enter()?;
    let status = Status { what: what.to_owned(), ..Status::default() };
    let shared = Shared {
        live: Mutex::new(live),
        status: Mutex::new(status),
        intervals: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let (orders, ordered) = channel();
    std::thread::scope(|scope| {
        let shared = &shared;
        let drawing = scope.spawn(move || show(screen, shared, state, &orders));
        let collected = {
            // Even if this thread panics, the other one ends and restores the terminal.
            let _over = Over(&shared.is_over);
            collect(collector, shared, &ordered, limits)
        };
        match drawing.join() {
            Ok(drawn) => collected.and_then(|said| drawn.map(|()| said)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Collects until the user, a signal or a limit ends it; then ends the recording, if there is one.
fn collect(
    collector: &mut Collector,
    shared: &Shared,
    ordered: &Receiver<()>,
    limits: &Limits,
) -> anyhow::Result<Vec<String>> {
    let mut said = Vec::new();
    let mut intervals = 0;
    let ended = loop {
        let (batches, recorded) = match collector.collect() {
            Ok(collected) => collected,
            Err(error) => break Err(error),
        };
        add(shared, &batches)?;
        if let Err(error) = recorded {
            show_message(shared, &format!("the recording ended: {error:#}"), true);
        }
        intervals += u64::from(lock(&shared.live).advance(collector.until()));
        shared.intervals.store(intervals, Relaxed);
        let is_wanted = match ordered.try_recv() {
            Ok(()) => true,
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => break Ok(()),
        };
        if is_wanted {
            match toggle(collector, shared) {
                Ok(lines) => said.extend(lines),
                Err(error) => break Err(error),
            }
        }
        note(collector, shared, limits);
        if interrupt::asked() || limits.are_over(intervals) {
            break Ok(());
        }
    };
    if collector.recording().is_some() {
        let (_, stopped) = collector.stop()?;
        said.extend(stopped?.iter().flat_map(finished));
    }
    ended.map(|()| said)
}

/// Starts or ends a recording. Errors are shown on the screen.
fn toggle(collector: &mut Collector, shared: &Shared) -> anyhow::Result<Vec<String>> {
    if collector.recording().is_some() {
        let (batches, stopped) = collector.stop()?;
        add(shared, &batches)?;
        let (message, is_bad, lines) = match stopped {
            Ok(recording) => {
                let lines: Vec<_> = recording.iter().flat_map(finished).collect();
                (lines.first().cloned().unwrap_or_default(), false, lines)
            }
            Err(error) => (format!("the recording failed: {error:#}"), true, Vec::new()),
        };
        show_message(shared, &message, is_bad);
        return Ok(lines);
    }
    match collector.start() {
        Ok((batches, path)) => {
            add(shared, &batches)?;
            show_message(shared, &format!("recording to {}", path.display()), false);
        }
        Err(error) => show_message(shared, &format!("cannot record: {error:#}"), true),
    }
    Ok(Vec::new())
}

fn add(shared: &Shared, batches: &[RecordBatch]) -> anyhow::Result<()> {
    let mut live = lock(&shared.live);
    for batch in batches {
        live.operations(batch).context("operations cannot be counted")?;
    }
    Ok(())
}

fn note(collector: &mut Collector, shared: &Shared, limits: &Limits) {
    let seen = collector.received();
    let mut status = lock(&shared.status);
    status.seen = seen;
    status.elapsed = limits.begin.elapsed();
    status.recording = collector.recording();
}

fn show_message(shared: &Shared, message: &str, is_bad: bool) {
    let mut status = lock(&shared.status);
    status.message = message.to_owned();
    status.is_bad = is_bad;
}

/// Draws and reads keys. When this thread ends, `orders` closes and collecting stops.
fn show(
    mut screen: Screen,
    shared: &Shared,
    mut state: State,
    orders: &Sender<()>,
) -> anyhow::Result<()> {
    let colour = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    let mut drawn = None;
    let mut frozen: Option<Live> = None;
    while !shared.is_over.load(Relaxed) {
        let intervals = shared.intervals.load(Relaxed);
        if drawn != Some(intervals) {
            drawn = Some(intervals);
            screen.draw(shared, frozen.as_ref(), &mut state, colour)?;
        }
        if !has_event(LOOK_EVERY)? {
            continue;
        }
        match event::read().context("keys cannot be read")? {
            Event::Key(key) => match state.press(key, draw::page(screen.height())) {
                Asked::Quit => return Ok(()),
                // If the collecting thread has ended, this one ends soon, too.
                Asked::Record => drop(orders.send(())),
                Asked::Nothing => {}
            },
            Event::Resize(..) => {}
            _ => continue,
        }
        match (state.paused, &frozen) {
            (true, None) => frozen = Some(lock(&shared.live).clone()),
            (false, Some(_)) => frozen = None,
            _ => {}
        }
        drawn = None;
    }
    Ok(())
}

/// The terminal while it is drawn on. Restores it when dropped.
pub(super) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub(super) fn enter() -> anyhow::Result<Screen> {
        interrupt::at_exit(restore);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Otherwise the message would be lost with the screen.
            restore();
            before(panic);
        }));
        let entered = enable_raw_mode().and_then(|()| {
            execute!(std::io::stdout(), EnterAlternateScreen, cursor::Hide)?;
            Terminal::new(CrosstermBackend::new(std::io::stdout()))
        });
        match entered {
            Ok(terminal) => Ok(Screen(terminal)),
            Err(error) => {
                restore();
                Err(error).context("the terminal cannot be drawn on: add --batch")
            }
        }
    }

    /// Shows lines of text, the first one bold.
    #[cfg(feature = "probe")]
    pub(super) fn text(&mut self, text: &str) -> anyhow::Result<()> {
        let bold = ratatui::style::Style::new().add_modifier(ratatui::style::Modifier::BOLD);
        let mut lines: Vec<_> = text.lines().map(ratatui::text::Line::raw).collect();
        if let Some(first) = lines.first_mut() {
            first.style = bold;
        }
        lines.push(ratatui::text::Line::raw(""));
        lines.push(ratatui::text::Line::raw("q ends"));
        let shown = ratatui::widgets::Paragraph::new(lines);
        let drawn = self.0.draw(|frame| frame.render_widget(shown, frame.area()));
        drawn.map(drop).context("the terminal cannot be written")
    }

    /// A key or another event, if there is one within that time.
    #[cfg(feature = "probe")]
    pub(super) fn event(&self, wait: Duration) -> anyhow::Result<Option<Event>> {
        has_event(wait)?.then(event::read).transpose().context("keys cannot be read")
    }

    fn height(&self) -> u16 {
        self.0.size().map_or(0, |size| size.height)
    }

    fn draw(
        &mut self,
        shared: &Shared,
        frozen: Option<&Live>,
        state: &mut State,
        colour: bool,
    ) -> anyhow::Result<()> {
        let mut snapshot = match frozen {
            Some(live) => live.snapshot(state.key, state.span),
            None => lock(&shared.live).snapshot(state.key, state.span),
        };
        let rows = state.rows(&mut snapshot);
        state.scroll(rows.len(), draw::page(self.height()));
        let status = lock(&shared.status).clone();
        let shown = Shown { state, status: &status, snapshot: &snapshot, rows: &rows, colour };
        let drawn = self.0.draw(|frame| draw::draw(frame, &shown));
        drawn.map(drop).context("the terminal cannot be written")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Waits for a key or another event; an error if the terminal is gone. crossterm would read its end for ever.
fn has_event(wait: Duration) -> anyhow::Result<bool> {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = std::io::stdin();
        if std::io::IsTerminal::is_terminal(&stdin) {
            let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
            let limit =
                Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
            match poll(&mut keys, Some(&limit)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("keys cannot be read"),
            }
            let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            if keys.iter().any(|key| key.revents().intersects(gone)) {
                anyhow::bail!("the terminal is gone");
            }
            return event::poll(Duration::ZERO).context("keys cannot be read");
        }
        if !std::io::IsTerminal::is_terminal(&std::io::stdout()) {
            anyhow::bail!("the terminal is gone");
        }
    }
    event::poll(wait).context("keys cannot be read")
}

/// Restores the terminal. If one step fails, the others are still tried.
fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(std::io::stdout(), LeaveAlternateScreen, cursor::Show);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // If the other thread panicked, the program is about to end; its numbers are still valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
