//! The durability test against the truth: a private Samba on a file system that loses what was not synced
//! (`tests/durability/losefs.py`) and says what that was. Each verdict must be made, and nothing else.
//!
//! `SMBSCOPE_ROUNDS` is the number of rounds of the case without faults (`make verify-durability`: 100).

// A test may panic.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

#[path = "support/losing_disk.rs"]
mod losing_disk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use losing_disk::{LosingDisk, Lost, Pulled, losing_disk};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use smbscope_client::{Config, Credential, Host};
use smbscope_load::durability::journal::{self, Kind, Record, Writer};
use smbscope_load::durability::judge::How;
use smbscope_load::durability::ledger::Ledger;
use smbscope_load::durability::plan::{Choice, Lane, Pattern, Plan, Way};
use smbscope_load::durability::result::{RoundResult, Tally};
use smbscope_load::durability::writer::{self, Phase, Round};
use smbscope_load::durability::{server::Identity, verify};
use smbscope_testing::run::{runtime, tcpdump};
use smbscope_testing::samba::{LOGON, Samba, samba};
use tokio::sync::watch;

/// Everything that one round needs and shows.
struct Bench {
    /// Dropped before the lab, in whose folder it is mounted.
    disk: LosingDisk,
    lab: Samba,
    host: Arc<Host>,
    folder: tempfile::TempDir,
    rounds: u32,
}

impl Bench {
    /// A lab with these settings on a disk with these faults.
    fn new(settings: &[(&str, &str)], disk: &[&str]) -> Option<Bench> {
        let lab = samba(|options| {
            options.set =
                settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        })?;
        let disk = losing_disk(&lab, disk)?;
        let host = Arc::new(runtime().block_on(lab.host()));
        Some(Bench { lab, disk, host, folder: tempfile::tempdir().unwrap(), rounds: 0 })
    }

    /// One round: writes, pulls the plug and verifies. The oracle's list must be the report's.
    fn play(&mut self, lanes: &[Lane], time: Duration) -> RoundResult {
        let number = self.rounds;
        self.rounds += 1;
        let plan = Arc::new(plan(lanes, &self.lab.target, number));
        let path = self.folder.path().join(format!("journal-{number}"));
        let writer = Writer::create(&path, &plan, 256 << 20).unwrap();
        let round =
            round(&self.lab, self.host.clone(), plan.clone(), number, writer.sender().clone());
        let runtime = runtime();
        let mut pulled = Pulled::default();
        runtime.block_on(async {
            let started = writer::start(&round).await.unwrap();
            let before = started.identity;
            let (phase, _) = watch::channel(Phase::Write);
            let writing = tokio::spawn(writer::write(round.clone(), started, phase));
            tokio::time::sleep(time).await;
            let children = self.lab.children();
            for &pid in &children {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            // A request that the file system had already received would come after the plug was pulled.
            let end = Instant::now() + Duration::from_secs(30);
            while children.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
                assert!(Instant::now() < end, "smbd does not end");
                std::thread::sleep(Duration::from_millis(2));
            }
            pulled = self.disk.pull();
            let folder = self.disk.share.join(plan.round_folder(number).replace('\\', "/"));
            let names = std::fs::read_dir(folder).into_iter().flatten();
            pulled.sizes = names
                .map(|one| one.unwrap())
                .map(|one| (one.file_name().into_string().unwrap(), one.metadata().unwrap().len()))
                .collect();
            let ends = writing.await.unwrap();
            assert!(ends.iter().any(|end| matches!(end, writer::End::Lost(_))), "{ends:?}");
            let session = writer::connect(&round).await.unwrap();
            let after = Identity::of_server(&session);
            let now = self.host.clock.now();
            round.journal.add(Record::event(Kind::Back, number, after.start_time, now)).await;
            session.close().await;
            assert_eq!(before.guid, after.guid);
        });
        drop(round);
        writer.finish().unwrap();
        let mut ledger = Ledger::new(&plan, number);
        let read = journal::read(&path, |plan, record| ledger.add(plan, &record)).unwrap();
        assert_eq!((read.cut_bytes, &read.plan), (0, &*plan));
        let result = runtime.block_on(async {
            let mut session = self.lab.connect(Config::default(), "user00001").await;
            let result = verify::verify(&mut session, &plan, &ledger, |_| ()).await.unwrap();
            verify::clean(&mut session, &plan, &ledger).await.unwrap();
            session.close().await;
            result
        });
        std::fs::remove_file(&path).unwrap();
        agrees(&plan, &ledger, &result, &pulled);
        result
    }

    /// Several rounds together, by way.
    fn play_all(&mut self, lanes: &[Lane], rounds: u32, time: Duration) -> BTreeMap<Way, Tally> {
        let mut all: BTreeMap<Way, Tally> = BTreeMap::new();
        for _ in 0..rounds {
            for (way, tally) in self.play(lanes, time).ways {
                all.entry(way).or_default().add(&tally);
            }
        }
        for (way, tally) in &all {
            println!(
                "{}: {} acknowledged, {} promised, {} checked, {} broken {:?}, {} lost {:?}, {} renames, {} undone, {} before data, {} torn in flight",
                way.name(),
                tally.writes,
                tally.promised,
                tally.checked,
                tally.broken(),
                tally.broken,
                tally.lost(),
                tally.lost,
                tally.renames,
                tally.renames_lost,
                tally.renames_before_data,
                tally.torn_in_flight
            );
        }
        all
    }
}

fn round(
    lab: &Samba,
    host: Arc<Host>,
    plan: Arc<Plan>,
    number: u32,
    journal: journal::Sender,
) -> Round {
    Round {
        host,
        credential: Credential::new("user00001", &lab.password),
        plan,
        number,
        journal,
        logon_timeout: LOGON,
        silence: Duration::from_secs(30),
        gap: Duration::ZERO,
    }
}

/// The report has exactly the acknowledged Writes that the model lost.
fn agrees(plan: &Plan, ledger: &Ledger, result: &RoundResult, pulled: &Pulled) {
    let mut acknowledged: BTreeSet<Lost> = BTreeSet::new();
    for (number, lane) in ledger.lanes.iter().enumerate() {
        let first = first_version(plan, ledger, number, pulled);
        for (file, of) in lane.files.range(first..) {
            let writes = of.writes.iter();
            acknowledged.extend(writes.map(|w| (number as u16, *file, w.block, w.sequence)));
        }
    }
    let lost = pulled.lost.iter().filter(|(round, _)| *round == ledger.round);
    let expected: BTreeSet<Lost> =
        lost.map(|(_, write)| *write).filter(|write| acknowledged.contains(write)).collect();
    let reported: BTreeSet<Lost> = result
        .losses
        .iter()
        .map(|loss| (loss.lane, loss.file, loss.write.block, loss.write.sequence))
        .collect();
    let more: Vec<_> = reported.difference(&expected).take(5).collect();
    let less: Vec<_> = expected.difference(&reported).take(5).collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "round {}: {} reported, {} lost; reported but not lost: {more:?}; lost but not reported: {less:?}",
        ledger.round,
        reported.len(),
        expected.len()
    );
}

/// The first file of a writer that must be there. A version that a later one replaced is gone, and so is what was not
/// synced of it, also if the reply to the rename never came: the file system says which version has the name.
fn first_version(plan: &Plan, ledger: &Ledger, number: usize, pulled: &Pulled) -> u32 {
    let (lane, of) = (plan.lanes[number], &ledger.lanes[number]);
    if lane.pattern != Pattern::Rename {
        return 0;
    }
    let size = |path: String| pulled.sizes.get(path.rsplit('\\').next().unwrap()).copied();
    let has_version = |version| size(plan.file(ledger.round, number as u16, version)).is_some();
    let renamed = of.renames.keys().next_back().copied().unwrap_or(0);
    // The files do not show whether the rename in flight was done, if that version has no name of its own.
    let newest = of.newest_rename(&lane);
    let newest = if has_version(newest) { renamed } else { newest };
    match (pulled.named.get(&(number as u16)), size(plan.renamed(ledger.round, number as u16))) {
        (Some(version), Some(0)) => newest.max(*version),
        (Some(version), _) => *version,
        // Nothing has the name: all versions are lost that no other replaced.
        (None, _) if renamed == 0 || has_version(renamed) => renamed,
        (None, _) => newest,
    }
}

fn plan(lanes: &[Lane], target: &str, number: u32) -> Plan {
    let run = format!("{:032x}", (u128::from(std::process::id()) << 64) + u128::from(number));
    let folder = format!("smbscope-durability\\{run}");
    Plan { run, target: target.into(), folder, start_ns: 0, lanes: lanes.to_vec() }
}

/// All ways and patterns, with small files so that blocks are written again.
fn lanes(patterns: &[Pattern]) -> Vec<Lane> {
    let choice = Choice {
        ways: Way::ALL.to_vec(),
        patterns: patterns.to_vec(),
        block_bytes: vec![4096, 65_536, 512, 262_144],
        depths: vec![1, 4],
        files: 2,
        file_bytes: 1 << 20,
    };
    choice.lanes()
}

const PROMISING: [Way; 4] = [Way::FlushEach, Way::FlushClose, Way::OpenThrough, Way::WriteThrough];

/// Enough time that each way makes promises, on a busy machine, too.
const TIME: Duration = Duration::from_millis(1500);

#[test]
fn strict_sync_keeps_every_promise() {
    let Some(mut bench) = Bench::new(&[("strict sync", "yes")], &[]) else { return };
    let rounds = std::env::var("SMBSCOPE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let all = bench.play_all(&lanes(&Pattern::ALL), rounds.unwrap_or(2), TIME);
    for (way, tally) in &all {
        assert_eq!(tally.broken(), 0, "{way:?}: {:?}", tally.broken);
    }
    for way in PROMISING {
        assert!(all[&way].checked > 0, "{way:?}");
    }
    // Data that was not promised is lost, and is not called a fault.
    assert!(all[&Way::Plain].lost() > 0);
    // Samba syncs what is written unbuffered, though nothing promises it.
    assert_eq!(all[&Way::Unbuffered].lost(), 0);
    // Samba of a lab is not clustered.
    assert!(!all.contains_key(&Way::Persistent));
}

/// Each promising way is found to break its promise.
fn all_break(all: &BTreeMap<Way, Tally>) {
    for way in PROMISING {
        assert!(all[&way].broken() > 0, "{way:?}: {:?}", all[&way]);
    }
}

#[test]
fn without_strict_sync_promises_are_broken() {
    let Some(mut bench) = Bench::new(&[("strict sync", "no")], &[]) else { return };
    all_break(&bench.play_all(&lanes(&Pattern::ALL), 1, TIME));
}

#[test]
fn a_disk_that_lies_is_found() {
    let Some(mut bench) = Bench::new(&[("strict sync", "yes")], &["mode=lies"]) else { return };
    all_break(&bench.play_all(&lanes(&Pattern::ALL), 1, TIME));
}

#[test]
fn a_flush_that_is_ignored_is_found() {
    let Some(mut bench) = Bench::new(&[("strict sync", "yes")], &["mode=ignores"]) else { return };
    all_break(&bench.play_all(&lanes(&Pattern::ALL), 1, TIME));
}

#[test]
fn a_torn_block_is_found() {
    let Some(mut bench) = Bench::new(&[("strict sync", "yes")], &["mode=torn"]) else { return };
    let lanes = lanes(&[Pattern::Append, Pattern::Overwrite]);
    let all = bench.play_all(&lanes, 2, TIME);
    let torn = |tally: &Tally| {
        let torn = tally.broken.iter().filter(|(how, _)| matches!(how, How::Torn(_)));
        torn.map(|(_, count)| count).sum::<u64>()
    };
    let found: u64 = all.values().map(torn).sum();
    assert!(found > 0, "{all:?}");
    // At most the last Write of each file is torn.
    let others = all.values().map(|tally| tally.broken()).sum::<u64>() - found;
    assert_eq!(others, 0, "{all:?}");
}

#[test]
fn a_rename_before_its_data_is_found() {
    let Some(mut bench) = Bench::new(&[("strict sync", "yes")], &["mode=rename"]) else { return };
    let all = bench.play_all(&lanes(&[Pattern::Rename]), 2, TIME);
    assert!(all[&Way::Plain].renames_before_data > 0, "{:?}", all[&Way::Plain]);
    for way in PROMISING {
        assert_eq!(all[&way].broken(), 0, "{way:?}");
        assert_eq!(all[&way].renames_before_data, 0, "{way:?}");
    }
}

/// The name is there without data, and version 2 is not: its rename cannot have been sent before the Flush of its blocks,
/// so that it is version 1, which was promised, that lost its data.
#[test]
fn lost_data_is_not_taken_for_that_of_a_version_that_was_not_renamed() {
    let Some(lab) = samba(|_| {}) else { return };
    let lane = Lane {
        way: Way::FlushClose,
        pattern: Pattern::Rename,
        block_bytes: 4096,
        depth: 1,
        files: 1,
        blocks: 8,
    };
    let plan = plan(&[lane], &lab.target, 0);
    let folder = lab.share().join(plan.round_folder(0).replace('\\', "/"));
    let record = |kind, file, number: i64| Record {
        file,
        block: (number as u32 - 1) % 8,
        sequence: number as u64,
        sent_ns: 10 * number,
        acked_ns: 10 * number + 5,
        ..Record::event(kind, 0, 0, 0)
    };
    let version =
        |file: u32| (1..=8).map(move |n| record(Kind::Write, file, 8 * i64::from(file - 1) + n));
    let promised = [record(Kind::Flush, 1, 9), record(Kind::Rename, 1, 10)];
    for has_name in [true, false] {
        let mut ledger = Ledger::new(&plan, 0);
        for record in version(1).chain(promised).chain(version(2)) {
            ledger.add(&plan, &record);
        }
        std::fs::create_dir_all(&folder).unwrap();
        if has_name {
            std::fs::write(folder.join("w000.dat"), "").unwrap();
        }
        let result = runtime().block_on(async {
            let mut session = lab.connect(Config::default(), "user00001").await;
            let result = verify::verify(&mut session, &plan, &ledger, |_| ()).await.unwrap();
            session.close().await;
            result
        });
        std::fs::remove_dir_all(&folder).unwrap();
        let tally = &result.ways[&Way::FlushClose];
        assert_eq!(
            (tally.checked, tally.broken(), tally.lost()),
            (8, 8, 8),
            "{has_name}: {tally:?}"
        );
        assert_eq!(tally.renames_before_data, u64::from(has_name), "{tally:?}");
    }
}

/// With a kernel that writes back after a time, lost data is not older than that.
#[test]
fn the_age_of_lost_data_is_the_time_of_the_cache() {
    let options = ["back=1.0"];
    let Some(mut bench) = Bench::new(&[("strict sync", "yes")], &options) else { return };
    let all = bench.play_all(&lanes(&[Pattern::Append]), 1, Duration::from_secs(4));
    let ages = &all[&Way::Plain].lost_ages_ns;
    let oldest = ages.iter().copied().max().unwrap();
    println!("oldest lost data: {:.3} s of {} Writes", oldest as f64 / 1e9, ages.len());
    // The reply follows the write; the file system looks at its clock when something is called.
    assert!((300_000_000..1_300_000_000).contains(&oldest), "{oldest}");
}

#[test]
fn what_was_recorded_as_acknowledged_is_on_the_wire() {
    let Some(lab) = samba(|_| {}) else { return };
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("wire.pcap");
    let Some(mut recorder) = tcpdump(&lab, &capture) else { return };
    let plan = Arc::new(plan(&lanes(&Pattern::ALL), &lab.target, 0));
    let path = folder.path().join("journal");
    let writer = Writer::create(&path, &plan, 256 << 20).unwrap();
    let runtime = runtime();
    let journal = writer.sender().clone();
    runtime.block_on(async {
        let host = Arc::new(lab.host().await);
        let gap = Duration::from_millis(20);
        let round = Round { gap, ..round(&lab, host, plan.clone(), 0, journal) };
        let started = writer::start(&round).await.unwrap();
        let (phase, _) = watch::channel(Phase::Write);
        let ending = phase.clone();
        let writing = tokio::spawn(writer::write(round, started, phase));
        tokio::time::sleep(Duration::from_secs(2)).await;
        ending.send_replace(Phase::End);
        for end in writing.await.unwrap() {
            assert!(matches!(end, writer::End::Asked | writer::End::NotOffered(_)), "{end:?}");
        }
    });
    writer.finish().unwrap();
    // The kernel hands the last packets over with some delay.
    std::thread::sleep(Duration::from_secs(2));
    kill(Pid::from_raw(recorder.id() as i32), Signal::SIGINT).unwrap();
    recorder.wait().unwrap();
    let mut recorded: BTreeMap<(&str, String, u64), u64> = BTreeMap::new();
    journal::read(&path, |plan, record| {
        let lane = plan.lanes[usize::from(record.lane)];
        let path = plan.file(0, record.lane, record.file);
        let offset = u64::from(record.block) * u64::from(lane.block_bytes);
        let key = match record.kind {
            Kind::Write => ("Write", path, offset),
            Kind::Flush => ("Flush", path, 0),
            _ => return,
        };
        *recorded.entry(key).or_default() += 1;
    })
    .unwrap();
    let captured = support::acknowledged(capture);
    assert!(recorded.len() > 100, "{}", recorded.len());
    let count = recorded.values().sum::<u64>();
    println!("{count} Writes and Flushes recorded, {} captured", captured.values().sum::<u64>());
    assert!(
        recorded == captured,
        "{:?}",
        recorded.iter().find(|(key, n)| captured.get(*key) != Some(n))
    );
}

/// What a capture shows.
mod support {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use arrow::array::{Array as _, AsArray as _};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, UInt64Type};
    use smbscope_capture::{Decoder, Input, Options, Part};

    /// Successful Writes and Flushes by path and offset.
    pub fn acknowledged(capture: PathBuf) -> BTreeMap<(&'static str, String, u64), u64> {
        let mut found = BTreeMap::new();
        for part in Decoder::open(vec![Input::Path(capture)], Options::default()).unwrap() {
            let Part::Operations(batch) = part.unwrap() else { continue };
            let text =
                |name: &str| cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
            let number =
                |name: &str| cast(batch.column_by_name(name).unwrap(), &DataType::UInt64).unwrap();
            let (commands, paths) = (text("command"), text("path"));
            let (status, offsets) = (number("status"), number("offset_bytes"));
            for row in 0..batch.num_rows() {
                let command = match commands.as_string::<i32>().value(row) {
                    "Write" => "Write",
                    "Flush" => "Flush",
                    _ => continue,
                };
                let status = status.as_primitive::<UInt64Type>();
                assert!(status.is_valid(row) && status.value(row) == 0);
                let offset = offsets.as_primitive::<UInt64Type>();
                let offset = if command == "Write" { offset.value(row) } else { 0 };
                let path = paths.as_string::<i32>().value(row).to_owned();
                *found.entry((command, path, offset)).or_default() += 1;
            }
        }
        found
    }
}
