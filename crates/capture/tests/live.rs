//! Records a conversation over real sockets on the loopback interface: the operations, and none of them
//! twice. Needs CAP_NET_RAW.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use smbscope_capture::live::{Error, Options, Recorder};
use smbscope_capture::{Options as Decode, Part};
use support::decode::{Decoded, Row, decode_files};
use support::smb2;
use support::talk::Talk;

const EXCHANGES: u64 = 300;

fn options(port: u16) -> Options {
    Options { interface: "lo".into(), ports: vec![port], ..Options::default() }
}

fn open(options: &Options) -> Option<Recorder> {
    match Recorder::open("test", options, &Decode::default()) {
        Ok(recorder) => Some(recorder),
        Err(Error::NoPermission) => {
            smbscope_testing::skip!("no CAP_NET_RAW");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Plays both sides of a conversation over `address`, which waits for each message to arrive.
fn play(listener: &TcpListener, talk: &Talk) {
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    for said in &talk.said {
        let (from, to) =
            if said.to_server { (&mut client, &mut server) } else { (&mut server, &mut client) };
        from.write_all(&said.bytes).unwrap();
        to.read_exact(&mut vec![0; said.bytes.len()]).unwrap();
    }
}

fn conversation() -> Talk {
    let mut talk = Talk::new();
    talk.connect();
    for id in 0..EXCHANGES {
        let id = 4 + id;
        talk.exchange(
            smb2::create(id, "folder\\file"),
            0,
            smb2::error(smb2::CREATE, id, smb2::NOT_FOUND),
        );
    }
    talk
}

fn take(seen: &mut Decoded, parts: Vec<Part>) {
    for part in parts {
        match part {
            Part::Operations(batch) => seen.batches.push(batch),
            Part::Connections(rows) => seen.connections.extend(rows),
            Part::Sessions(rows) => seen.sessions.extend(rows),
            Part::Trees(rows) => seen.trees.extend(rows),
            Part::Handles(rows) => seen.handles.extend(rows),
            Part::Coverage(row) => seen.coverage.push(*row),
            _ => {}
        }
    }
}

/// Records while `work` runs in another thread.
fn record(mut recorder: Recorder, work: impl FnOnce() + Send + 'static) -> Decoded {
    let (done, is_done) = channel::<()>();
    let worker = std::thread::spawn(move || {
        work();
        drop(done);
    });
    let mut seen = Decoded::default();
    while is_done.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
        if recorder.receive().unwrap() {
            take(&mut seen, recorder.parts(&mut |_, _| {}).unwrap());
        }
    }
    worker.join().unwrap();
    take(&mut seen, recorder.end(&mut |_, _| {}).unwrap());
    seen
}

/// Columns that depend on the time or on the vantage point.
fn stable(rows: Vec<Row>) -> Vec<Row> {
    const KEPT: [&str; 11] = [
        "operation",
        "command",
        "detail",
        "status",
        "message_id",
        "path",
        "share",
        "session_id",
        "tree_id",
        "request_wire_bytes",
        "response_wire_bytes",
    ];
    let keep =
        |row: Row| row.into_iter().filter(|(name, _)| KEPT.contains(&name.as_str())).collect();
    rows.into_iter().map(keep).collect()
}

#[test]
fn a_conversation_is_seen_once_and_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = support::decode::folder();
    let pcap = folder.path().join("kept.pcap");
    for interface in ["lo", "any"] {
        let options = Options {
            interface: interface.into(),
            pcap: Some(pcap.clone()),
            overwrite: true,
            ..options(port)
        };
        let Some(recorder) = open(&options) else { return };
        let (listener, other) = (listener.try_clone().unwrap(), other.try_clone().unwrap());
        let seen = record(recorder, move || {
            play(&listener, &conversation());
            play(&other, &conversation());
        });
        let coverage = &seen.coverage[0];
        assert_eq!(coverage.operations, 4 + EXCHANGES, "{interface}");
        assert_eq!(coverage.operations_unanswered, 0);
        assert_eq!(
            (coverage.frames_dropped, coverage.gaps, coverage.retransmissions),
            (Some(0), 0, 0)
        );
        assert!(coverage.format.starts_with("live"), "{}", coverage.format);
        assert_eq!(coverage.vantage.as_deref(), Some("server"));
        assert_eq!(seen.connections.len(), 1);
        assert_eq!(seen.connections[0].server_port, u64::from(port));
        assert!(seen.connections[0].handshake_seen);
        let rows = seen.rows();
        assert!(
            rows.iter().all(|row| row.contains_key("elapsed_ns") && row.contains_key("server_ns"))
        );
        // The kept packets decode to the same rows, frames included.
        let kept = decode_files(vec![pcap.clone()], &support::decode::single()).unwrap();
        assert_eq!(stable(kept.rows()), stable(rows.clone()));
        for column in ["request_frame", "response_frame", "response_end", "tcp_sequence"] {
            assert_eq!(kept.numbers(column), seen.numbers(column), "{column}");
        }
    }
}

#[test]
fn packets_that_are_cut_give_the_same_operations() {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let Some(recorder) = open(&options(port)) else { return };
    let seen = record(recorder, move || {
        let mut talk = Talk::new();
        talk.connect();
        for id in 4..40 {
            // Larger than a segment, than the copied head, and than IP's 64 KiB.
            talk.exchange(smb2::read(id, 1, 0, 200_000), 0, smb2::data(id, &[7; 200_000]));
        }
        play(&listener, &talk);
    });
    let coverage = &seen.coverage[0];
    assert_eq!((coverage.operations, coverage.operations_unanswered), (40, 0));
    assert!(coverage.frames_cut >= 36 && coverage.gaps == 0, "{coverage:?}");
    assert!(coverage.wire_bytes > 36 * 200_000);
    let moved: Vec<_> = seen.numbers("transferred_bytes").into_iter().flatten().collect();
    assert_eq!(moved.iter().filter(|&&bytes| bytes == 200_000).count(), 36);
}

#[test]
fn an_error_for_a_missing_interface_lists_the_existing_ones() {
    let options = Options { interface: "no-such0".into(), ..Options::default() };
    let Err(error) = Recorder::open("test", &options, &Decode::default()) else { panic!("opened") };
    let text = error.to_string();
    assert!(
        text.contains("no-such0: no such interface; there are") && text.contains("lo"),
        "{text}"
    );
}

#[test]
fn nothing_comes_and_nothing_waits_for_long() {
    let Some(mut recorder) = open(&options(1)) else { return };
    let begin = std::time::Instant::now();
    assert!(!recorder.receive().unwrap());
    assert!(begin.elapsed() < Duration::from_secs(5));
    let parts = recorder.end(&mut |_, _| {}).unwrap();
    assert!(matches!(parts.as_slice(), [Part::Coverage(coverage)] if coverage.frames == 0));
}
