//! A recorder that is killed leaves nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libbpf_rs::query::ProgInfoIter;
use smbscope_capture::Options;
use smbscope_client::Config;
use smbscope_samba::find::{Choice, SERVER, find};
use smbscope_samba::loader::LoadOptions;
use smbscope_samba::recording::Recording;
use smbscope_samba::symbols::{Function, Symbols};

use crate::client::Client;
use crate::recorder::{alone, blocked};
use smbscope_testing::samba::samba;

const PORT: &str = "SMBSCOPE_TEST_PORT";
const READY: &str = "it records";

/// The environment variable of the process that the test below starts and kills.
#[test]
#[ignore = "records until it is killed; started by another test"]
fn records_until_it_is_killed() {
    let Ok(port) = std::env::var(PORT) else { return };
    let choice = Choice { ports: vec![port.parse().unwrap()], ..Choice::default() };
    let begun = Recording::begin("k", &choice, LoadOptions::default(), &Options::default(), None);
    let mut recording = match begun {
        Ok(recording) => recording,
        Err(error) if blocked() => return smbscope_testing::skip!("{error}"),
        Err(error) => panic!("{error}"),
    };
    println!("{READY}");
    // Its parent process may fail.
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        recording.poll().unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ids of the BPF programs that a process holds.
fn programs_of(process: u32) -> BTreeSet<u32> {
    let mut programs = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{process}/fdinfo")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix("prog_id:"));
        programs.extend(lines.filter_map(|number| number.trim().parse::<u32>().ok()));
    }
    programs
}

fn programs() -> BTreeSet<u32> {
    ProgInfoIter::default().map(|program| program.id).collect()
}

/// Whether any program is recording.
fn records() -> bool {
    ProgInfoIter::default().any(|program| program.name == c"dispatch")
}

/// The function that every request passes through.
fn dispatch(port: u16) -> Function {
    let found = find(&Choice { ports: vec![port], ..Choice::default() }).unwrap();
    let symbols = Symbols::read(&found.servers[0].path).unwrap();
    symbols.find(&["smbd_smb2_request_dispatch"]).unwrap()[0].unwrap()
}

/// Its first bytes in the library.
fn function_in_file(port: u16) -> [u8; 4] {
    dispatch(port).first
}

/// Its first bytes in a process's memory.
fn function(process: i32, port: u16) -> [u8; 4] {
    let offset = dispatch(port).offset;
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let address = maps.lines().filter(|line| line.contains(SERVER)).find_map(|line| {
        let mut fields = line.split_whitespace();
        let (from, to) = fields.next()?.split_once('-')?;
        let place = number(fields.nth(1)?);
        let length = number(to) - number(from);
        (place..place + length).contains(&offset).then(|| number(from) + offset - place)
    });
    let mut memory = fs::File::open(format!("/proc/{process}/mem")).unwrap();
    memory.seek(SeekFrom::Start(address.unwrap())).unwrap();
    let mut bytes = [0; 4];
    memory.read_exact(&mut bytes).unwrap();
    bytes
}

/// The probes that tracefs lists, where it is mounted: they would outlive their creator.
fn listed() -> Option<String> {
    fs::read_to_string("/sys/kernel/tracing/uprobe_events").ok()
}

#[test]
fn a_killed_recorder_leaves_nothing_behind() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let helpers = lab.children();
    let mut client = Client::connect(&lab, Config::default());
    let file = client.open("file");
    let server = lab.children().into_iter().find(|process| !helpers.contains(process)).unwrap();
    let tables = listed();
    let file_bytes = function_in_file(lab.port());
    // Otherwise the code also has other probes than ours.
    let others = function(server, lab.port()) != file_bytes || records();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["killed::records_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
        .env(PORT, lab.port().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !said.contains(READY) && lines.read_line(&mut said).unwrap() > 0 {}
    if !said.contains(READY) {
        assert!(said.contains("skipped"), "{said}");
        eprintln!("{said}");
        child.wait().unwrap();
        return;
    }
    let ours = programs_of(child.id());
    assert!(ours.len() > 10, "{ours:?}");
    assert!(ours.is_subset(&programs()));
    assert_ne!(function(server, lab.port()), file_bytes, "no probe is in smbd's code");
    for _ in 0..20 {
        client.query(file);
    }
    let begin = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    eprintln!("it ended {:?} after its death", begin.elapsed());
    // The kernel cleans up when no thread can be in a probe any more.
    let begin = Instant::now();
    while !ours.is_disjoint(&programs()) && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    eprintln!("{} programs gone after {:?}", ours.len(), begin.elapsed());
    assert!(ours.is_disjoint(&programs()), "programs are left");
    let others = others || records();
    let left = function(server, lab.port()) != file_bytes;
    if others {
        eprintln!("another recorder has its probes in smbd's code too")
    } else {
        assert!(!left, "a probe is left in smbd's code")
    }
    assert_eq!(listed(), tables);
    client.query(file);
    client.close(file);
    client.end();
    Client::connect(&lab, Config::default()).end();
}
