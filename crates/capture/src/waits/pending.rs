//! Requests without an answer yet, and the rows of the table `waits`.

use std::collections::VecDeque;
use std::net::IpAddr;

use hashbrown::HashMap;
use smbscope_tables::tables::Wait;

use super::PENDING_MAX;
use crate::frame::{Address, FlowKey, TcpSegment};
use crate::outcome::{Output, WaitEnd};

/// A question that is repeated after this time is another one, ns: longer than resolvers and TCP
/// back off.
const ANOTHER_AFTER_NS: i64 = 75_000_000_000;

/// What a question is recognised by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Flow(FlowKey),
    /// Protocol, client, name and type of the record.
    Name(&'static str, Address, String, u16),
    /// Protocol, and the two ends: one request at a time.
    Datagram(&'static str, FlowKey),
}

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Connecting,
    /// Connected, and the first request is still to come.
    First,
    Asked,
}

/// One packet, from the client's point of view.
#[derive(Clone, Debug)]
pub struct Asking {
    pub client: IpAddr,
    pub server: IpAddr,
    /// The sender of an answer.
    pub answered_by: Option<IpAddr>,
    pub port: u16,
    pub time: i64,
    pub frame: u64,
    pub subject: Option<String>,
}

impl Asking {
    pub fn from_segment(
        segment: &TcpSegment<'_>,
        to_server: bool,
        time: i64,
        frame: u64,
    ) -> Asking {
        let (source, destination) = (segment.source.ip(), segment.destination.ip());
        let (client, server) =
            if to_server { (source, destination) } else { (destination, source) };
        let port = if to_server { segment.destination_port } else { segment.source_port };
        let answered_by = (!to_server).then_some(server);
        Asking { client, server, answered_by, port, time, frame, subject: None }
    }
}

/// How a wait ended.
pub struct End {
    pub outcome: &'static str,
    pub result: Option<String>,
}

impl End {
    pub fn of(outcome: &'static str) -> End {
        End { outcome, result: None }
    }

    /// An answer, which says no if it has a result.
    pub fn with(result: Option<String>) -> End {
        End { outcome: if result.is_some() { "failed" } else { "answered" }, result }
    }
}

#[derive(Clone, Debug)]
struct Open {
    stage: Stage,
    row: Wait,
}

/// Requests without an answer.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    open: HashMap<Key, Open, foldhash::fast::RandomState>,
    /// In the order in which they were asked; entries may have ended.
    asked: VecDeque<Key>,
}

impl Pending {
    /// What a connection waits for.
    pub fn stage(&self, key: FlowKey) -> Option<Stage> {
        self.open.get(&Key::Flow(key)).map(|open| open.stage)
    }

    /// The connection is open, and its first request will be one of interest.
    pub fn expect_first(&mut self, key: FlowKey, asking: &Asking) {
        let row = row("web", "HTTP", asking);
        self.insert(Key::Flow(key), Open { stage: Stage::First, row });
    }

    /// Asks, perhaps again.
    pub fn ask(
        &mut self,
        key: Key,
        stage: Stage,
        kind: &'static str,
        protocol: &'static str,
        asking: Asking,
        out: &mut Output,
    ) {
        if let Some(open) = self.open.get_mut(&key)
            && open.stage == stage
        {
            if asking.time.saturating_sub(open.row.last_attempt) < ANOTHER_AFTER_NS {
                open.row.attempts += 1;
                open.row.last_attempt = open.row.last_attempt.max(asking.time);
                open.row.last_frame = asking.frame;
                return;
            }
            emit(open.row.clone(), out);
        }
        let row = row(kind, protocol, &asking);
        self.insert(key, Open { stage, row });
        while self.asked.len() > PENDING_MAX
            && let Some(oldest) = self.asked.pop_front()
        {
            self.forget(&oldest, out);
        }
    }

    fn insert(&mut self, key: Key, open: Open) {
        if self.open.insert(key.clone(), open).is_none() {
            self.asked.push_back(key);
        }
    }

    /// An answer, or another end. Without a question it says nothing.
    pub fn end(&mut self, key: Key, asking: &Asking, end: End, out: &mut Output) {
        let Some(Open { stage, mut row }) = self.open.remove(&key) else { return };
        if self.asked.len() > 2 * self.open.len() + 64 {
            let Pending { open, asked } = self;
            asked.retain(|key| open.contains_key(key));
        }
        if stage == Stage::First {
            return;
        }
        row.end = Some(asking.time.max(row.start));
        row.last_frame = asking.frame;
        row.answered_by = asking.answered_by.map(|address| address.to_string());
        end.outcome.clone_into(&mut row.outcome);
        row.result = end.result;
        emit(row, out);
    }

    /// The name that a client asked a server for last, without an answer so far.
    pub fn name_asked(&self, asking: &Asking) -> Option<Key> {
        let (client, server) = (asking.client.to_string(), asking.server.to_string());
        let is_of = |key: &&Key| {
            let row = self.open.get(*key).map(|open| &open.row);
            matches!(key, Key::Name(..) | Key::Datagram(..))
                && row.is_some_and(|row| {
                    (&row.client, &row.server, row.port)
                        == (&client, &server, u64::from(asking.port))
                })
        };
        self.asked.iter().rev().find(is_of).cloned()
    }

    /// A name that some client asked for.
    pub fn asked_by_anybody(&self, protocol: &str, name: &str, record: u16) -> Option<Key> {
        let is_of = |key: &&Key| {
            matches!(key, Key::Name(of, _, asked, kind)
                if *of == protocol && asked == name && *kind == record)
        };
        self.asked.iter().find(is_of).filter(|key| self.open.contains_key(*key)).cloned()
    }

    fn forget(&mut self, key: &Key, out: &mut Output) {
        if let Some(Open { stage, row }) = self.open.remove(key)
            && stage != Stage::First
        {
            emit(row, out);
        }
    }

    /// Everything ends without an answer.
    pub fn end_all(&mut self, out: &mut Output) {
        for key in std::mem::take(&mut self.asked) {
            self.forget(&key, out);
        }
    }
}

fn row(kind: &str, protocol: &str, asking: &Asking) -> Wait {
    Wait {
        client: asking.client.to_string(),
        server: asking.server.to_string(),
        port: asking.port.into(),
        kind: kind.to_owned(),
        protocol: protocol.to_owned(),
        subject: asking.subject.clone(),
        start: asking.time,
        last_attempt: asking.time,
        attempts: 1,
        outcome: "none".to_owned(),
        first_frame: asking.frame,
        last_frame: asking.frame,
        ..Wait::default()
    }
}

fn emit(row: Wait, out: &mut Output) {
    out.waits.push(WaitEnd { connection: None, row });
}

/// What takes no time of its own: a router asks for smaller packets.
pub fn event(kind: &str, asking: Asking, bytes: u64, out: &mut Output) {
    let row = row(kind, "ICMP", &asking);
    emit(
        Wait {
            end: Some(asking.time),
            outcome: "unreachable".to_owned(),
            answered_by: asking.answered_by.map(|address| address.to_string()),
            size_bytes: Some(bytes),
            ..row
        },
        out,
    );
}
