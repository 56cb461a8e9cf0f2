//! Durable opens outlive a lost connection: an execution that is interrupted anywhere continues over
//! the next connection, and the file has the same contents as without the interruption.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use smbscope_client::clock::Clock;
use smbscope_client::{ClientError, Config, Credential, Host, Session, Target};
use smbscope_load::execute::{Outcome, Performer};
use smbscope_load::fileset::Scale;
use smbscope_load::prepare;
use smbscope_load::workload::{ClientCache, Overrides, Plan, Planner, Workload};
use smbscope_testing::samba::{LOGON, Samba, samba, samba_4_22};
use smbscope_wire::smb2::Dialect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Forwards connections to a server, and interrupts one after the given number of requests.
struct Line {
    /// Requests that still pass; below zero there is no limit.
    left: AtomicI64,
    /// Whether the last of them reaches the server, so that only its reply is lost.
    delivers: AtomicBool,
}

impl Line {
    async fn lay(server: SocketAddr) -> (Arc<Line>, u16) {
        let line = Arc::new(Line { left: AtomicI64::new(-1), delivers: AtomicBool::new(false) });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let carrier = line.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.unwrap();
                tokio::spawn(carrier.clone().carry(client, server));
            }
        });
        (line, port)
    }

    async fn carry(self: Arc<Line>, client: TcpStream, server: TcpStream) {
        let (mut client_in, mut client_out) = client.into_split();
        let (mut server_in, mut server_out) = server.into_split();
        let requests = async {
            loop {
                let mut frame = vec![0; 4];
                client_in.read_exact(&mut frame).await?;
                let length = u32::from_be_bytes([0, frame[1], frame[2], frame[3]]) as usize;
                frame.resize(4 + length, 0);
                client_in.read_exact(&mut frame[4..]).await?;
                let last = self.left.fetch_sub(1, Ordering::SeqCst) == 1;
                if !last || self.delivers.load(Ordering::SeqCst) {
                    server_out.write_all(&frame).await?;
                }
                if last {
                    // Time for the server to execute it; its reply is not forwarded.
                    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                    return std::io::Result::Ok(());
                }
            }
        };
        let replies = async {
            let mut buffer = vec![0; 65_536];
            loop {
                let length = server_in.read(&mut buffer).await?;
                // Nothing is returned while the last request is in flight.
                if length == 0 || self.left.load(Ordering::SeqCst) == 0 {
                    std::future::pending::<()>().await;
                }
                client_out.write_all(&buffer[..length]).await?;
            }
            #[allow(unreachable_code)]
            std::io::Result::Ok(())
        };
        tokio::select! { _ = requests => {}, _ = replies => {} }
    }
}

async fn connect(host: &Arc<Host>, password: &str, previous: Option<&Session>) -> Session {
    let credential = Credential::new("user00001", password);
    let previous = previous.map(Session::previous);
    let connected = Session::connect(LOGON, host.clone(), &credential, 0, previous).await;
    connected.map_err(|failed| failed.error).unwrap()
}

/// Does an execution whose connection is cut at request `cut`; returns how it ended, if it could continue.
async fn cut_off(
    line: &Line,
    host: &Arc<Host>,
    password: &str,
    plan: &Plan,
    cut: i64,
    delivers: bool,
) -> Option<Result<Outcome, ClientError>> {
    let mut session = connect(host, password, None).await;
    let mut performer = Performer::new(ClientCache::Published);
    line.delivers.store(delivers, Ordering::SeqCst);
    line.left.store(cut, Ordering::SeqCst);
    let error = performer.perform(&mut session, plan).await.unwrap_err();
    assert!(matches!(error, ClientError::Lost(_)), "request {cut}: {error}");
    line.left.store(-1, Ordering::SeqCst);
    if !performer.may_resume() {
        return None;
    }
    let mut next = connect(host, password, Some(&session)).await;
    let outcome = performer.resume(&mut next, plan).await;
    next.close().await;
    Some(outcome)
}

async fn goes_on(lab: &Samba, dialect: Dialect) {
    let target = Target::parse(&lab.target).unwrap();
    let (line, port) = Line::lay(([127, 0, 0, 1], target.port).into()).await;
    let target = Target { port, ..target };
    let config = Config { dialects: vec![dialect], durable: true, ..Config::default() };
    let host = Arc::new(Host::find(target, config, Clock::start(), true).await.unwrap());
    let workload = Workload::built_in("bulk-copy").unwrap();
    let small =
        Overrides { block_bytes: Some(65_536), depth: Some(2), size_bytes: Some(4 * 65_536 + 7) };

    let planner = Planner::new(Arc::new(workload.with_overrides(&small).unwrap()), 1, Scale::FULL);
    let mut session = connect(&host, &lab.password, None).await;
    let home = "user00001";
    prepare::prepare(&mut session, planner.files(), 1, home, |_| ()).await.unwrap();
    let mut plans = planner.user(1, home);
    // Create, QueryInfo or SetInfo, five blocks, ..., Close.
    for (scenario, requests) in [(0, 8), (1, 10)] {
        for (cut, delivers) in (1..=requests).flat_map(|cut| [(cut, false), (cut, true)]) {
            let plan = plans.next_of(scenario).unwrap();
            let ended = cut_off(&line, &host, &lab.password, &plan, cut, delivers).await;
            let what = format!("{dialect:?}, scenario {scenario}, request {cut}, {delivers}");
            if cut == 1 {
                assert!(ended.is_none(), "{what}: nothing was open");
                continue;
            }
            let outcome = ended.expect(&what).expect(&what);
            assert_eq!(outcome.failed, None, "{what}");
            // The delivered Close also closed the open.
            let closed = cut == requests && delivers;
            assert_eq!(outcome.resumed, u64::from(!closed), "{what}");
        }
    }
    // The written data is complete, in spite of all cuts.
    let found = prepare::list(&mut session, "user00001\\Incoming").await.unwrap().unwrap();
    assert!(!found.is_empty());
    assert!(found.iter().all(|entry| entry.bytes == 4 * 65_536 + 7), "{found:?}");
    session.close().await;
}

fn everywhere(lab: &Samba) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for dialect in [Dialect::SMB_2_1, Dialect::SMB_3_0, Dialect::SMB_3_1_1] {
        runtime.block_on(goes_on(lab, dialect));
    }
}

#[test]
fn an_execution_goes_on_after_every_cut() {
    let Some(lab) = samba(|options| options.durable = Some(true)) else { return };
    everywhere(&lab);
}

#[test]
fn an_execution_goes_on_after_every_cut_on_4_22() {
    let Some(four) = samba_4_22() else { return };
    let Some(lab) = samba(|options| {
        options.samba = Some(four);
        options.durable = Some(true);
    }) else {
        return;
    };
    everywhere(&lab);
}
