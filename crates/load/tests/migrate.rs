//! Migrations over one and several channels on a real Samba: no byte is lost or twice, whatever happens to a path.

// A test may panic.
#![allow(clippy::unwrap_used)]

#[path = "support/paths.rs"]
mod paths;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use paths::Paths as NetworkPaths;
use sha2::{Digest as _, Sha256};
use smbscope_client::clock::Clock;
use smbscope_client::multichannel::Choice;
use smbscope_client::multichannel::policy::{Rules, Verdict};
use smbscope_client::{Config, Credential, Encryption, Host, Signing, Target};
use smbscope_lab as lab;
use smbscope_load::migrate::{
    MigrationObserver, MigrationOutcome, MigrationPlan, MigrationProgress, Paths, run,
};
use smbscope_load::recorder::Recorder;
use smbscope_load::workload::{Direction, MIGRATIONS, Migration, MigrationChanges};
use smbscope_tables::Part;
use smbscope_testing::samba::{Samba, samba};
use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::negotiate_context::SigningId;
use tokio::sync::watch;

const MIB: u64 = 1 << 20;

/// Notes what happens, and does something at each report.
struct Notes<'a> {
    said: Vec<String>,
    at: Box<dyn FnMut(&MigrationProgress) + Send + 'a>,
}

impl MigrationObserver for Notes<'_> {
    fn say(&mut self, text: &str) {
        println!("{text}");
        self.said.push(text.to_owned());
    }

    fn progress(&mut self, progress: &MigrationProgress) {
        (self.at)(progress);
    }
}

/// What is done.
struct Case<'a> {
    config: Config,
    changes: MigrationChanges,
    paths: Paths,
    choice: Choice,
    target: String,
    at: Box<dyn FnMut(&MigrationProgress) + Send + 'a>,
}

impl Case<'_> {
    fn new(target: &str, mib: u64, paths: Paths) -> Case<'static> {
        Case {
            config: Config {
                credits: 512,
                path_timeout: Some(Duration::from_secs(2)),
                ..Config::default()
            },
            changes: MigrationChanges { bytes: Some(mib * MIB), ..MigrationChanges::default() },
            paths,
            choice: Choice::default(),
            target: target.to_owned(),
            at: Box::new(|_| ()),
        }
    }
}

/// What a run showed.
struct Shown {
    outcome: MigrationOutcome,
    parts: Vec<Part>,
    said: Vec<String>,
}

/// Runs it, with verification, and keeps the files.
fn migrate(lab: &Samba, case: Case<'_>) -> Shown {
    let (name, text) = MIGRATIONS[0];
    let migration = Migration::parse(name, name, text).unwrap().unwrap();
    let migration = migration.with_changes(&case.changes).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (sender, parts) = sync_channel(10_000);
    let mut notes = Notes { said: Vec::new(), at: case.at };
    let (_interrupt, interrupted) = watch::channel(false);
    let outcome = runtime.block_on(async {
        let target = Target::parse(&case.target).unwrap();
        let host = Host::find(target, case.config, Clock::start(), true).await.unwrap();
        let host = match &case.paths {
            Paths::Listed(list) => host.at_address(list[0].0),
            _ => host,
        };
        let plan = MigrationPlan {
            host: Arc::new(host),
            credential: Credential::new("user00001", &lab.password),
            migration,
            seed: 7,
            paths: case.paths,
            choice: case.choice,
            verify: true,
            keep: true,
            timeout: Duration::from_secs(30),
            interrupted,
            recorder: Arc::new(Recorder::new("run", 1, sender)),
        };
        run(plan, &mut notes).await.unwrap()
    });
    Shown { outcome, parts: parts.try_iter().collect(), said: notes.said }
}

fn hash_of(file: &Path) -> String {
    let hash = Sha256::digest(std::fs::read(file).unwrap());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything arrived: compared by the client, and on the server's disk.
fn assert_whole(lab: &Samba, shown: &Shown) {
    let outcome = &shown.outcome;
    assert_eq!(outcome.trouble, None);
    let verified = outcome.verified.as_ref().unwrap();
    assert_eq!(verified.different_blocks, 0, "{:?}", verified.different);
    for (path, hash) in &verified.sha256 {
        assert_eq!(hash_of(&lab.share().join(path.replace('\\', "/"))), *hash, "{path}");
    }
}

fn channel_rows(parts: &[Part]) -> Vec<&smbscope_tables::tables::Channel> {
    let rows = parts.iter().filter_map(|part| match part {
        Part::Channels(rows) => Some(rows),
        _ => None,
    });
    rows.flatten().collect()
}

fn interface_rows(parts: &[Part]) -> Vec<(String, bool, String, Option<String>)> {
    let rows = parts.iter().filter_map(|part| match part {
        Part::Interfaces(rows) => Some(rows),
        _ => None,
    });
    rows.flatten()
        .map(|row| (row.address.clone(), row.used, row.reason.clone(), row.status.clone()))
        .collect()
}

/// The sum of `channels` is what was moved, and what the operations moved.
fn assert_rows(shown: &Shown, expected: u64) {
    let rows = channel_rows(&shown.parts);
    let moved: u64 = rows.iter().map(|row| row.bytes_written + row.bytes_read).sum();
    assert_eq!(moved, expected, "channels");
    let measured = rows.iter().filter(|row| row.phase.as_deref() == Some("measured"));
    let measured: u64 = measured.map(|row| row.bytes_written + row.bytes_read).sum();
    assert_eq!(measured, shown.outcome.bytes);
    let written: u64 = shown
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Connections(rows) => Some(rows),
            _ => None,
        })
        .flatten()
        .map(|row| row.bytes_to_server + row.bytes_to_client)
        .sum();
    assert!(written >= expected, "{written}");
}

#[test]
fn every_direction_and_protection_moves_all_data() {
    let Some(lab) = samba(|options| options.multichannel = Some(true)) else { return };
    let signed = |algorithm| Config {
        signing: Signing::Required,
        signing_algorithms: vec![algorithm],
        ..Case::new("", 1, Paths::Count(1)).config
    };
    let plain = || Case::new("", 1, Paths::Count(1)).config;
    let cases = [
        (plain(), Direction::Out, 1, 4),
        (plain(), Direction::In, 1, 1),
        (plain(), Direction::Both, 3, 4),
        (signed(SigningId::AES_GMAC), Direction::Both, 2, 2),
        (signed(SigningId::AES_CMAC), Direction::Out, 1, 3),
        (Config { dialects: vec![Dialect::SMB_3_0], ..plain() }, Direction::Out, 1, 2),
        (Config { encryption: Encryption::Off, ..plain() }, Direction::In, 2, 2),
    ];
    for (config, direction, streams, channels) in cases {
        // On a busy machine a short transfer can end before the last channel joins.
        let joined = [20, 100, 400].into_iter().any(|mib| {
            let mut case = Case::new(&lab.target, mib, Paths::Count(channels));
            case.config = config.clone();
            case.changes.direction = Some(direction);
            case.changes.streams = Some(streams);
            // Blocks that do not divide the file.
            case.changes.block_bytes = Some(700_001);
            let shown = migrate(&lab, case);
            assert_whole(&lab, &shown);
            let outcome = &shown.outcome;
            assert_eq!(outcome.bytes, u64::from(streams) * mib * MIB);
            let moved: u64 = outcome.channels.iter().map(|one| one.moved_bytes).sum();
            assert_eq!(moved, outcome.bytes);
            let rows = channel_rows(&shown.parts);
            assert!(rows.iter().all(|row| row.bound_at.is_some() && row.channel.is_some()));
            std::fs::remove_dir_all(lab.share().join("smbscope-migrate")).unwrap();
            outcome.channels.len() == usize::from(channels)
        });
        assert!(joined, "{channels} channels, {direction:?}");
    }
}

#[test]
fn encrypted_sessions_get_channels_where_the_server_desires_encryption() {
    let options = |options: &mut lab::Options| {
        options.multichannel = Some(true);
        options.encryption = lab::Encryption::Desired;
    };
    let Some(lab) = samba(options) else { return };
    // On a busy machine a short transfer can end before the last channel joins.
    let joined = [20, 100, 400].into_iter().any(|mib| {
        let mut case = Case::new(&lab.target, mib, Paths::Count(3));
        case.config.encryption = Encryption::Required;
        let shown = migrate(&lab, case);
        assert_whole(&lab, &shown);
        assert!(shown.outcome.protection.cipher.is_some());
        assert!(shown.outcome.refused.iter().all(|it| it.1.contains("the transfer ended before")));
        std::fs::remove_dir_all(lab.share().join("smbscope-migrate")).unwrap();
        shown.outcome.channels.len() == 3
    });
    assert!(joined, "three channels with encryption");
}

/// Public reports: with encryption for all sessions Samba refuses more channels.
#[test]
fn a_refused_binding_is_reported_and_the_data_moves_on_one_channel() {
    let options = |options: &mut lab::Options| {
        options.multichannel = Some(true);
        options.encryption = lab::Encryption::Required;
    };
    let Some(lab) = samba(options) else { return };
    let shown = migrate(&lab, Case::new(&lab.target, 200, Paths::Count(3)));
    assert_whole(&lab, &shown);
    assert_eq!(shown.outcome.channels.len(), 1);
    // On a busy machine the data may have moved before the server refused the second of the two.
    let refused = &shown.outcome.refused;
    let is_denied =
        |reason: &str| reason.contains("STATUS_ACCESS_DENIED") && reason.contains("encryption");
    let (denied, others): (Vec<_>, Vec<_>) = refused.iter().partition(|it| is_denied(&it.1));
    assert_eq!(denied.len(), 1, "{refused:?}");
    assert!(others.iter().all(|it| it.1.contains("the transfer ended before")), "{refused:?}");
    let rows = channel_rows(&shown.parts);
    let refused = rows.iter().filter_map(|row| row.bind_status.as_deref());
    assert!(refused.into_iter().any(|status| status == "STATUS_ACCESS_DENIED"), "{rows:?}");
}

/// Public reports: an offered loopback address leads the client to another server, which does not know the session.
#[test]
fn a_loopback_address_of_another_server_has_no_such_session() {
    let Some(lab) = samba(|options| options.multichannel = Some(true)) else { return };
    let port = lab.port();
    let other = samba(|options| {
        options.multichannel = Some(true);
        options.address = [127, 0, 0, 2].into();
        options.port = Some(port);
    });
    if other.is_none() {
        return;
    }
    let paths = [[127, 0, 0, 1], [127, 0, 0, 2]];
    let paths = paths.map(|address| ((address, port).into(), 1)).to_vec();
    let shown = migrate(&lab, Case::new(&lab.target, 10, Paths::Listed(paths)));
    assert_whole(&lab, &shown);
    assert_eq!(shown.outcome.channels.len(), 1);
    let [(_, reason)] = shown.outcome.refused.as_slice() else {
        panic!("{:?}", shown.outcome.refused)
    };
    let is_named = reason.contains("STATUS_USER_SESSION_DELETED") && reason.contains("loopback");
    assert!(is_named, "{reason}");
    let rows = channel_rows(&shown.parts);
    let refused = rows.iter().find(|row| row.bind_status.is_some()).unwrap();
    assert_eq!(refused.bind_status.as_deref(), Some("STATUS_USER_SESSION_DELETED"));
    assert_eq!(&*refused.server, "127.0.0.2");
}

fn server(network: &NetworkPaths, each: impl Fn(usize) -> String) -> Option<Samba> {
    samba(|options| {
        options.multichannel = Some(true);
        options.address = NetworkPaths::address(0).into();
        options.interfaces = network.interfaces(each);
        options.enter = network.enter();
    })
}

fn listed(port: u16, paths: &[(usize, u16)]) -> Paths {
    let socket = |&(path, count): &(usize, u16)| (NetworkPaths::socket(path, port), count);
    Paths::Listed(paths.iter().map(socket).collect())
}

#[test]
fn listed_paths_all_carry_data() {
    let Some(network) = NetworkPaths::up(&["", ""]) else { return };
    let Some(lab) = server(&network, |_| String::new()) else { return };
    let paths = listed(lab.port(), &[(0, 1), (1, 2)]);
    let target = format!("//{}:{}/home", NetworkPaths::address(0), lab.port());
    let shown = network.inside(|| migrate(&lab, Case::new(&target, 1024, paths)));
    assert_whole(&lab, &shown);
    let servers: Vec<_> =
        shown.outcome.channels.iter().map(|one| one.state.server.0.as_str()).collect();
    assert_eq!(servers, ["10.77.0.2", "10.77.1.2", "10.77.1.2"]);
    assert!(shown.outcome.channels.iter().all(|one| one.moved_bytes > 10 * MIB));
    assert_rows(&shown, 2 * 1024 * MIB);
    // The list of interfaces is not file data.
    let moved: u64 = shown.outcome.channels.iter().map(|one| one.moved_bytes).sum();
    assert_eq!(moved, shown.outcome.bytes);
}

/// An address that the list leaves out was never to be used.
#[test]
fn an_address_that_is_not_listed_has_that_reason() {
    let Some(network) = NetworkPaths::up(&["", "", ""]) else { return };
    let Some(lab) = server(&network, |_| ";speed=1000000000".to_owned()) else { return };
    let paths = listed(lab.port(), &[(0, 1), (1, 1)]);
    let target = format!("//{}:{}/home", NetworkPaths::address(0), lab.port());
    let shown = network.inside(|| migrate(&lab, Case::new(&target, 1024, paths)));
    let mut rows = interface_rows(&shown.parts);
    rows.sort();
    let words: Vec<_> = rows.iter().map(|row| (row.0.as_str(), row.2.as_str())).collect();
    assert_eq!(words, [("10.77.0.2", "used"), ("10.77.1.2", "used"), ("10.77.2.2", "not_listed")]);
}

/// Payload of each connection, by the client's port: what it wrote and read.
fn payload(parts: &[Part]) -> BTreeMap<u64, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in channel_rows(parts) {
        let sum: &mut (u64, u64) = sums.entry(row.client_port).or_default();
        sum.0 += row.bytes_written;
        sum.1 += row.bytes_read;
    }
    sums.retain(|_, sum| *sum != (0, 0));
    sums
}

/// Bytes of TCP of each connection, by the client's port: to the server and to the client.
fn tcp_bytes(parts: &[Part]) -> BTreeMap<u64, (u64, u64)> {
    let rows = parts.iter().filter_map(|part| match part {
        Part::Connections(rows) => Some(rows),
        _ => None,
    });
    let bytes = |row: &smbscope_tables::tables::Connection| {
        (row.client_port, (row.bytes_to_server, row.bytes_to_client))
    };
    rows.flatten().map(bytes).collect()
}

/// What the rows say of each channel is what a capture of the same run says.
#[test]
fn each_channel_carries_what_tcpdump_captures() {
    let Some(network) = NetworkPaths::up(&["", ""]) else { return };
    let Some(lab) = server(&network, |_| String::new()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcap");
    let mut attempts = 0;
    let shown = loop {
        let mut tcpdump = std::process::Command::new("ip");
        tcpdump.args(["netns", "exec", &network.client(), "tcpdump", "-i", "any", "-s", "0", "-B"]);
        tcpdump.args(["65536", "--immediate-mode", "-Z", "root", "-w"]).arg(&file);
        tcpdump.args(["tcp", "port", &lab.port().to_string()]);
        let Ok(tcpdump) = tcpdump.stderr(std::process::Stdio::piped()).spawn() else {
            smbscope_testing::skip!("no tcpdump");
            return;
        };
        std::thread::sleep(Duration::from_secs(2));
        let target = format!("//{}:{}/home", NetworkPaths::address(0), lab.port());
        let mut case = Case::new(&target, 16, listed(lab.port(), &[(0, 1), (1, 2)]));
        case.changes.direction = Some(Direction::Both);
        let shown = network.inside(|| migrate(&lab, case));
        assert_whole(&lab, &shown);
        std::thread::sleep(Duration::from_secs(2));
        let pid = nix::unistd::Pid::from_raw(tcpdump.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        let told = tcpdump.wait_with_output().unwrap().stderr;
        let told = String::from_utf8_lossy(&told).into_owned();
        // On a busy machine the kernel drops packets that tcpdump does not fetch in time; such a capture proves nothing.
        if told.contains("\n0 packets dropped by kernel") {
            break shown;
        }
        attempts += 1;
        assert!(attempts < 5, "tcpdump loses packets each time: {told}");
    };
    let options = smbscope_capture::Options::default();
    let input = vec![smbscope_capture::Input::Path(file)];
    let decoder = smbscope_capture::Decoder::open(input, options).unwrap();
    let captured: Vec<Part> = decoder.map(|part| part.unwrap()).collect();
    assert_eq!(tcp_bytes(&shown.parts), tcp_bytes(&captured));
    assert_eq!(payload(&shown.parts), payload(&captured));
    assert!(payload(&shown.parts).len() >= 2);
}

/// The policy chooses from the server's list, while data flows; every address has its reason.
#[test]
fn the_server_s_list_decides() {
    let Some(network) = NetworkPaths::up(&["", "", "", ""]) else { return };
    let texts = [
        ";speed=10000000000,capability=RSS",
        ";speed=10000000000",
        ";speed=1000000000",
        ";speed=10000000000",
    ];
    let Some(lab) = server(&network, |path| texts[path].to_owned()) else { return };
    // The client has no way to the last one.
    let delete = format!("netns exec {} ip link delete c3", network.client());
    let done = std::process::Command::new("ip").args(delete.split(' ')).status().unwrap();
    assert!(done.success());
    let target = format!("//{}:{}/home", NetworkPaths::address(0), lab.port());
    let shown =
        network.inside(|| migrate(&lab, Case::new(&target, 400, Paths::Offered(Rules::default()))));
    assert_whole(&lab, &shown);
    let mut rows = interface_rows(&shown.parts);
    rows.sort();
    let words: Vec<_> = rows
        .iter()
        .map(|(address, used, reason, _)| (address.as_str(), *used, reason.as_str()))
        .collect();
    assert_eq!(
        words,
        [
            ("10.77.0.2", true, "used"),
            ("10.77.1.2", true, "used"),
            ("10.77.2.2", false, "speed_class"),
            ("10.77.3.2", false, "no_route"),
        ]
    );
    let carried = |address: &str| {
        shown.outcome.channels.iter().filter(|one| one.state.server.0 == address).count()
    };
    // On a busy machine the transfer may end before all are bound.
    assert!((1..=4).contains(&carried("10.77.0.2")) && carried("10.77.1.2") == 1);
    let wanted = |path: usize| {
        let address = Some(NetworkPaths::address(path).into());
        let mut offers = shown.outcome.interfaces.iter();
        offers.find(|one| one.judged.offered.address == address).unwrap().judged.verdict.clone()
    };
    assert_eq!((wanted(0), wanted(1)), (Verdict::Use(4), Verdict::Use(1)));
    let rows = channel_rows(&shown.parts);
    assert!(
        rows.iter().any(|row| row.server_interface.is_some() && row.client_interface.is_some())
    );
}

/// A path is cut while data flows: its requests are repeated on the other, and no byte is lost.
#[test]
fn a_path_cut_in_the_middle_loses_nothing() {
    let Some(network) = NetworkPaths::up(&["rate=200mbit,rtt=1ms", "rate=200mbit,rtt=1ms"]) else {
        return;
    };
    let Some(lab) = server(&network, |_| String::new()) else { return };
    let target = format!("//{}:{}/home", NetworkPaths::address(0), lab.port());
    for victim in [1, 0] {
        let mut is_cut = false;
        let mut case = Case::new(&target, 120, listed(lab.port(), &[(0, 1), (1, 1)]));
        case.at = Box::new(|progress| {
            if !is_cut && progress.bytes > 20 * MIB {
                is_cut = true;
                network.cut(victim);
            }
        });
        let shown = network.inside(|| migrate(&lab, case));
        assert_whole(&lab, &shown);
        assert!(shown.outcome.repeated > 0, "{:?}", shown.said);
        let rows = channel_rows(&shown.parts);
        let repeated = rows.iter().filter_map(|row| Some((row.connection, row.repeated?)));
        let repeated: BTreeMap<u64, u64> = repeated.collect();
        assert_eq!(repeated.values().sum::<u64>(), shown.outcome.repeated);
        let lost = shown.outcome.channels.iter().filter(|one| one.lost.is_some());
        assert!(lost.count() >= 1, "{:?}", shown.said);
        let up = format!("-n {} link set s{victim} up", network.server());
        assert!(std::process::Command::new("ip").args(up.split(' ')).status().unwrap().success());
    }
}

/// When the last path goes, the run ends with an error instead of waiting for answers that cannot come.
#[test]
fn the_loss_of_the_last_channel_ends_the_run() {
    let Some(network) = NetworkPaths::up(&["rate=200mbit,rtt=1ms", "rate=200mbit,rtt=1ms"]) else {
        return;
    };
    let Some(lab) = server(&network, |_| String::new()) else { return };
    let target = format!("//{}:{}/home", NetworkPaths::address(0), lab.port());
    for paths in [&[(0, 1)][..], &[(0, 1), (1, 1)]] {
        let mut is_cut = false;
        let mut case = Case::new(&target, 200, listed(lab.port(), paths));
        case.at = Box::new(|progress| {
            if !is_cut && progress.bytes > 20 * MIB {
                is_cut = true;
                paths.iter().for_each(|&(path, _)| network.cut(path));
            }
        });
        let shown = network.inside(|| migrate(&lab, case));
        let trouble = shown.outcome.trouble.as_deref().unwrap();
        assert!(trouble.contains("the last connection of the session is lost"), "{trouble}");
        assert!(shown.said.iter().any(|text| text.contains("no other one is left")));
        assert!(shown.outcome.channels.iter().all(|one| one.lost.is_some()), "{:?}", shown.said);
        assert!(shown.outcome.bytes > 0);
        let rows = channel_rows(&shown.parts);
        assert!(rows.iter().any(|row| row.lost_at.is_some() && row.lost_reason.is_some()));
        for (path, _) in paths {
            let up = format!("-n {} link set s{path} up", network.server());
            let up = std::process::Command::new("ip").args(up.split(' ')).status().unwrap();
            assert!(up.success());
        }
    }
}

/// A path of a tenth of the speed does not delay the other; in turn it would.
#[test]
fn a_slow_path_does_not_brake_the_others() {
    let Some(network) = NetworkPaths::up(&["rate=200mbit,rtt=1ms", "rate=20mbit,rtt=1ms"]) else {
        return;
    };
    let Some(lab) = server(&network, |_| String::new()) else { return };
    let target = format!("//{}:{}/home", NetworkPaths::address(0), lab.port());
    let rate = |choice| {
        let mut case = Case::new(&target, 60, listed(lab.port(), &[(0, 1), (1, 1)]));
        case.choice = choice;
        case.changes.block_bytes = Some(256 << 10);
        case.changes.depth = Some(4);
        let shown = network.inside(|| migrate(&lab, case));
        assert_whole(&lab, &shown);
        let outcome = &shown.outcome;
        let bits = outcome.bytes as f64 * 8.0 / outcome.took.as_secs_f64() / 1e6;
        println!("{choice:?}: {bits:.0} Mbit/s");
        bits
    };
    let (least, turn) = (rate(Choice::LeastInFlight), rate(Choice::RoundRobin));
    // In turn, both get as many blocks: twice the slow one's rate.
    assert!(turn < 55.0, "{turn}");
    assert!(least > 2.5 * turn, "{least} {turn}");
}
