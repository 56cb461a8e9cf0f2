//! What the load client costs: CPU for each operation and memory for each session, compared with a bare
//! send and receive of the same bytes and with other clients. `make bench-load` runs it.
//!
//! Each case runs in a process of its own (this program again), so that memory and CPU time are
//! the client's alone.

mod floor;
mod measure;
mod ours;
mod peer;
mod responder;
mod table;
mod users;

use std::sync::Arc;
use std::time::Duration;

use measure::Figures;

/// As in the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What the sessions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opens and closes a file, two operations.
    Pair,
    /// Asks for an open file's information.
    QueryInfo,
    /// Echo.
    Echo,
    /// Nothing.
    Idle,
}

/// One line's worth of measuring.
#[derive(Clone, Debug)]
pub struct Case {
    /// Whose client.
    pub client: String,
    /// What it does.
    pub operation: Operation,
    /// How often at a time.
    pub sessions: usize,
    /// Whether messages are signed.
    pub signed: bool,
    /// Whether the server is a Samba, not the responder.
    pub samba: bool,
    /// The share.
    pub target: String,
    /// The users' password.
    pub password: String,
}

impl Case {
    fn from_arguments(arguments: &[String]) -> Case {
        let operation = match arguments[1].as_str() {
            "pair" => Operation::Pair,
            "query" => Operation::QueryInfo,
            "echo" => Operation::Echo,
            _ => Operation::Idle,
        };
        Case {
            client: arguments[0].clone(),
            operation,
            sessions: arguments[2].parse().unwrap(),
            signed: arguments[3] == "signed",
            samba: arguments[4] == "samba",
            target: arguments[5].clone(),
            password: std::env::var("BENCH_PASSWORD").unwrap_or_default(),
        }
    }

    /// Logons at a time.
    pub fn logons(&self) -> usize {
        if self.samba { 8 } else { 64 }
    }

    /// Rounds, of which the best counts.
    pub fn rounds(&self) -> usize {
        if self.operation == Operation::Idle { 0 } else { 3 }
    }

    /// Length of a round.
    pub fn round(&self) -> Duration {
        Duration::from_millis(400)
    }

    /// `host:port` and the share's name.
    pub fn address_and_share(&self) -> (&str, &str) {
        self.target.trim_start_matches('/').split_once('/').unwrap()
    }
}

fn main() {
    measure::raise_files();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        None => table::print(),
        Some("responder") => measure::runtime().block_on(responder::serve()),
        Some(_) => {
            let case = Arc::new(Case::from_arguments(&arguments));
            let runtime = measure::runtime();
            // As the sessions it runs on a worker, not on this thread.
            let figures = runtime.block_on(runtime.spawn(run(case))).unwrap();
            figures.print();
            // Sessions are not closed in order: the server notices.
            std::process::exit(0);
        }
    }
}

async fn run(case: Arc<Case>) -> Figures {
    match case.client.as_str() {
        "floor" => floor::run(case).await,
        "smbscope" => ours::run(case).await,
        "smb2" => peer::run(case).await,
        "users" => users::run(case).await,
        other => panic!("no client {other}"),
    }
}
