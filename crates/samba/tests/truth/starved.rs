//! A server that does not get the CPU: requests wait in its queue, and the slices still
//! agree with the wire.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use smbscope_client::Config;
use smbscope_tables::slice::Kind;

use crate::client::Client;
use crate::recorder::{Row, alone};
use crate::wire::Joined;
use smbscope_testing::samba::{Samba, samba};

/// The CPU that another thread uses.
const CPU: usize = 1;
/// Durations of its turns: busy, then idle.
const TAKEN: Duration = Duration::from_millis(5);
const FREE: Duration = Duration::from_millis(1);
const ROUNDS: usize = 300;

fn only(cpu: usize) -> CpuSet {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    cpus
}

/// A thread with precedence over all others on the CPU: a server that mostly sleeps would run
/// before busy threads of its own kind.
struct Spinner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    /// `None`, with a message, where that is not permitted.
    fn begin() -> Option<Spinner> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (sender, thread)) = (stop.clone(), channel());
        let spin = move || {
            sched_setaffinity(None, &only(CPU)).unwrap();
            sender.send(gettid()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let begin = Instant::now();
                while begin.elapsed() < TAKEN {
                    std::hint::spin_loop();
                }
                std::thread::sleep(FREE);
            }
        };
        let spinner = Spinner { stop, thread: Some(std::thread::spawn(spin)) };
        let thread = thread.recv().unwrap().as_raw_nonzero().to_string();
        match Command::new("chrt").args(["--fifo", "--pid", "1", &thread]).status() {
            Ok(status) if status.success() => Some(spinner),
            result => {
                smbscope_testing::skip!("no real-time priority here: chrt: {result:?}");
                None
            }
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Requests one after the other, at any time within the other thread's turns.
fn run(lab: &Samba, starve: bool) -> Option<Joined> {
    let mut client = Client::connect(lab, Config::default());
    let file = client.open("file");
    let work = |client: &mut Client| {
        for round in 0..ROUNDS as u64 {
            client.query(file);
            std::thread::sleep(Duration::from_micros(500 + round * 7919 % 3000));
        }
    };
    for process in lab.children() {
        sched_setaffinity(Pid::from_raw(process), &only(CPU)).unwrap();
    }
    let spinner = if starve { Some(Spinner::begin()?) } else { None };
    let joined = Joined::from_lab(lab, || work(&mut client));
    drop(spinner);
    client.close(file);
    client.end();
    joined
}

/// The duration below which the given share of a slice's durations is.
fn at(rows: &[Row], kind: Kind, share: f64) -> i64 {
    let mut values: Vec<i64> = rows.iter().map(|row| row.ns(kind)).collect();
    values.sort_unstable();
    values[((values.len() - 1) as f64 * share) as usize]
}

#[test]
fn a_starved_server_queues() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    if std::thread::available_parallelism().unwrap().get() <= CPU {
        return smbscope_testing::skip!("one processor only");
    }
    // A client that got the CPU only in the server's turns would never find it busy.
    sched_setaffinity(None, &only(CPU - 1)).unwrap();
    let Some(quiet) = run(&lab, false) else { return };
    let Some(starved) = run(&lab, true) else { return };
    let (calm, busy) = (quiet.recorded.rows(), starved.recorded.rows());
    assert_eq!((calm.len(), busy.len()), (ROUNDS, ROUNDS));
    for &kind in &Kind::ALL[..Kind::PARTS] {
        let of = |rows: &[Row]| [0.5, 0.95, 1.0].map(|share| at(rows, kind, share));
        eprintln!("{}: p50, p95, max {:?} ns, starved {:?}", kind.name(), of(&calm), of(&busy));
    }
    quiet.check();
    starved.check();
    assert!(starved.at(0.99) < 3_000_000, "p99 {}", starved.at(0.99));
    // Five sixths of the requests wait, half of them for long. The median, because on a busy machine
    // one in ten of the undisturbed ones waits as well.
    let [before, after] = [&calm, &busy].map(|rows| at(rows, Kind::Queue, 0.5));
    assert!(after > 10 * before, "queue p50 {before} ns, starved {after} ns");
}
