//! Somebody on the path acknowledges Writes of the durability test that the server never sees: none of these acknowledgements
//! reaches the journal when the user requires protection.

// A test may panic.
#![allow(clippy::unwrap_used)]

// The server of the client's tests, of which some parts are not used here.
#[allow(dead_code)]
#[path = "../../client/tests/strict/server.rs"]
mod server;

use std::sync::Arc;
use std::time::Duration;

use server::{Lie, PASSWORD, Server};
use smbscope_client::{Config, Credential, Encryption, Signing};
use smbscope_load::durability::journal::{self, Kind, Writer};
use smbscope_load::durability::plan::{Lane, Pattern, Plan, Way};
use smbscope_load::durability::writer::{self, End, Phase, Round};
use smbscope_wire::smb2::{Command, Dialect};
use tokio::sync::watch;

/// Writes acknowledged by the server itself.
const HONEST: u32 = 5;

/// The Writes and Flushes in the journal, and why the writer ended.
async fn acknowledged(server: Server, config: Config, way: Way) -> (u32, u32, String) {
    let lane =
        Lane { way, pattern: Pattern::Append, block_bytes: 4096, depth: 1, files: 1, blocks: 64 };
    let run = "5".repeat(32);
    let folder = format!("smbscope-durability\\{run}");
    let plan = Plan { run, target: "//fake/share".into(), folder, start_ns: 0, lanes: vec![lane] };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let writer = Writer::create(&path, &plan, 1 << 20).unwrap();
    let round = Round {
        host: server.host(config),
        credential: Credential::new("LAB\\alice", PASSWORD),
        plan: Arc::new(plan),
        number: 0,
        journal: writer.sender().clone(),
        logon_timeout: Duration::from_secs(5),
        silence: Duration::from_secs(5),
        gap: Duration::ZERO,
    };
    let started = writer::start(&round).await.unwrap();
    let ends = writer::write(round.clone(), started, watch::channel(Phase::Write).0).await;
    let [End::Lost(error)] = &ends[..] else { panic!("{ends:?}") };
    drop(round);
    writer.finish().unwrap();
    let (mut writes, mut flushes) = (0, 0);
    journal::read(&path, |_, record| {
        writes += u32::from(record.kind == Kind::Write);
        flushes += u32::from(record.kind == Kind::Flush);
    })
    .unwrap();
    (writes, flushes, error.to_string())
}

#[tokio::test]
async fn a_forged_acknowledgement_is_not_in_the_journal() {
    let signed = Config { signing: Signing::Required, ..Config::default() };
    let sealed = Config { encryption: Encryption::Required, ..Config::default() };
    for (config, lie) in [
        (signed.clone(), Lie::Plain),
        (signed.clone(), Lie::WrongSignature),
        (signed, Lie::Command(1)),
        (sealed.clone(), Lie::Plain),
        (sealed, Lie::Command(1)),
    ] {
        for (command, way) in
            [(Command::WRITE, Way::WriteThrough), (Command::FLUSH, Way::FlushEach)]
        {
            let lying = Server::lying(Dialect::SMB_3_1_1, command, lie);
            let server = Server { honest_first: HONEST, ..lying };
            let (writes, flushes, error) = acknowledged(server, config.clone(), way).await;
            let counted = if command == Command::WRITE { writes } else { flushes };
            assert_eq!(counted, HONEST, "{lie:?}: {error}");
            let is_refused =
                error.contains("failed verification") || error.contains("says that it answers");
            assert!(is_refused, "{lie:?}: {error}");
        }
    }
}
