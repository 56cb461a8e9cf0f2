//! A delay below the share appears in its slice, and in no other.
//!
//! A busy machine may delay any thread by milliseconds at any time. So the rounds are identical, and
//! the fastest run of each operation counts.

use std::time::Duration;

use smbscope_client::Config;
use smbscope_tables::slice::Kind;

use crate::client::Client;
use crate::fuse::{Waits, mount};
use crate::recorder::{Recorder, Row, alone};
use smbscope_testing::samba::{Samba, samba};

const DELAY: Duration = Duration::from_millis(10);
const ROUNDS: usize = 15;
/// Operations of a round.
const ROUND: usize = 7;

#[test]
fn a_slow_file_system_is_seen_where_it_is_slow() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(slow) = mount(&lab.share()) else { return };
    let mut complaints = Vec::new();
    // Other programs may use the CPUs for a while: not three times in a row.
    for _ in 0..3 {
        let Some(found) = compare(&lab, &slow.waits) else { return };
        complaints = found;
        if complaints.is_empty() {
            break;
        }
        eprintln!("{complaints:?}");
    }
    assert!(complaints.is_empty(), "{complaints:?}");
}

/// Runs quickly and slowly, and returns the differences from the expectation.
fn compare(lab: &Samba, waits: &Waits) -> Option<Vec<String>> {
    let quick = run(lab, waits, Duration::ZERO)?;
    let slowed = run(lab, waits, DELAY)?;
    let waited = [Kind::Filesystem, Kind::Io, Kind::Flush].iter().zip(slowed.waited);
    let all: f64 = waited.clone().map(|(_, ms)| ms).sum();
    let (mut others, mut complaints) = (0.0, Vec::new());
    for &kind in &Kind::ALL[..Kind::PARTS] {
        let [before, after] = [&quick, &slowed].map(|run| least(&run.rows, kind));
        let expected = waited.clone().find(|(of, _)| **of == kind).map_or(0.0, |(_, ms)| ms);
        let (name, more) = (kind.name(), after - before);
        eprintln!(
            "{name}: {before:.1} ms, slow {after:.1} ms; {more:.1} more, {expected:.1} waited"
        );
        if expected == 0.0 {
            others += more;
        } else if (more - expected).abs() / expected >= 0.05 {
            complaints.push(format!("{name}: {more} ms more, {expected} ms waited"));
        }
    }
    // After a wait the CPU's caches are cold.
    if others >= 0.05 * all {
        complaints.push(format!("the others grew by {others} ms of {all} ms"));
    }
    Some(complaints)
}

/// Undisturbed time of a round in a slice, ms.
fn least(rows: &[Row], kind: Kind) -> f64 {
    let of = |place| rows.iter().skip(place).step_by(ROUND).map(|row| row.ns(kind)).min();
    (0..ROUND).filter_map(of).sum::<i64>() as f64 / 1e6
}

struct Run {
    rows: Vec<Row>,
    /// Time that a round waited for files, I/O and flushes, ms.
    waited: [f64; 3],
}

/// Operations of a client for which the file system waits, recorded.
fn run(lab: &Samba, waits: &Waits, delay: Duration) -> Option<Run> {
    let mut client = Client::connect(lab, Config::default());
    let file = client.open("first");
    client.write(file, 0, &[7; 65536]);
    // The pool then has its thread.
    client.close(file);
    let recorder = Recorder::begin(lab)?;
    let sums = [&waits.files, &waits.io, &waits.flush];
    let (mut counts, mut ns) = ([u64::MAX; 3], [0; 3]);
    waits.set(delay);
    for _ in 0..ROUNDS {
        let file = client.open("first");
        client.query(file);
        assert_eq!(client.read(file, 0, 65536), 65536);
        client.write(file, 0, &[8; 65536]);
        client.flush(file);
        client.write_through(file, 0, &[9; 65536]);
        client.close(file);
        for ((count, ns), sum) in counts.iter_mut().zip(&mut ns).zip(sums) {
            let (times, least) = sum.take();
            (*count, *ns) = (times.min(*count), least);
        }
    }
    waits.set(Duration::ZERO);
    let recorded = recorder.end();
    client.end();
    let rows = recorded.rows();
    assert_eq!(rows.len(), ROUNDS * ROUND);
    let waited = std::array::from_fn(|place| (counts[place] * ns[place]) as f64 / 1e6);
    Some(Run { rows, waited })
}
