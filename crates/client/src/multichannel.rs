//! A session over several connections at once: each in a task of its own, requests on the one with the least in
//! flight.
//!
//! Owns: which connection a request goes to, connections that join while others are in use, and what becomes of the
//! requests of one that is lost: they are repeated on another, with the next ChannelSequence and the replay flag
//! (MS-SMB2 sections 3.2.4.1.9, 3.2.7.1; the server's side 3.3.5.2.10). It does not own the requests
//! ([`Request`]) nor which interfaces are used ([`policy`]). Once the last connection is lost, so is the session:
//! durable opens are not reconnected here.

mod channel_task;
mod data;
pub mod policy;
pub mod routes;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use smbscope_wire::status::Status;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::channel::Channel;
use crate::credential::Credential;
use crate::error::ClientError;
use crate::negotiate::Negotiated;
use crate::reply::Reply;
use crate::row::Row;
use crate::session::{Binder, Ended, Parts, Session};
use channel_task::{Job, Report};
pub use data::{ChannelState, Choice, Event, Settings};

/// Pause before a request is repeated that the server refused because an older copy of it is still at work.
const REPEAT_PAUSE: Duration = Duration::from_millis(20);

/// Time for a connection's last replies before the session is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that can be sent more than once.
pub trait Request: Send + Sync {
    /// Payload of the request or of its reply, in bytes: for credits, and as what is in flight.
    fn payload_bytes(&self) -> u32;

    /// File data of it, in bytes: what its channel has carried once it is answered.
    fn data_bytes(&self) -> u32 {
        self.payload_bytes()
    }

    /// Whether a repetition is marked as such: requests that change something.
    fn is_marked(&self) -> bool;

    /// Adds the request to the channel's frame, in this session and tree; returns its MessageId. `scratch` is
    /// kept from request to request.
    fn add(
        &self,
        channel: &mut Channel,
        ids: (u64, u32),
        scratch: &mut Vec<u8>,
        replay: bool,
    ) -> u64;

    /// Whether the caller needs the reply's message.
    fn keeps_message(&self) -> bool {
        false
    }

    /// Whether the reply's payload is what it should be. Runs in the connection's task.
    fn is_intact(&self, _reply: &Reply, _scratch: &mut Vec<u8>) -> bool {
        true
    }
}

/// A connection's task, and what it was given.
struct Lane {
    state: ChannelState,
    jobs: Option<UnboundedSender<Job>>,
    task: Option<JoinHandle<Option<Channel>>>,
    socket: Option<Arc<crate::tcp_state::Socket>>,
    in_flight: usize,
    /// When it was chosen last, counted in requests.
    chosen: u64,
}

impl Lane {
    fn is_alive(&self) -> bool {
        self.jobs.is_some()
    }
}

/// A request without its answer.
struct Waiting {
    request: Arc<dyn Request>,
    /// Index of its lane; `None` while it waits for one.
    lane: Option<usize>,
    replay: bool,
    since: Instant,
}

/// See the module.
pub struct Multichannel {
    parts: Parts,
    binder: Result<Binder, ClientError>,
    settings: Settings,
    lanes: Vec<Lane>,
    waiting: HashMap<u64, Waiting>,
    /// Requests that will be repeated, and when.
    again: VecDeque<(Instant, u64)>,
    /// Answers that came while [`Multichannel::call`] waited for another one.
    events: VecDeque<Event>,
    reports: UnboundedReceiver<Report>,
    report: UnboundedSender<Report>,
    sequence: Arc<AtomicU16>,
    joining: usize,
    next_id: u64,
    next_channel: u32,
    chosen: u64,
    #[expect(clippy::vec_box, reason = "a row is 600 bytes and goes through several lists")]
    rows: Vec<Box<Row>>,
    /// Connections that were never bound.
    refused: Ended,
    /// Why the last connection was lost: the session went with it.
    gone: Option<String>,
}

impl Multichannel {
    /// Drives the session's connections from now on.
    pub fn new(session: Session, credential: &Credential, settings: Settings) -> Multichannel {
        let binder = session.binder(credential);
        let (parts, channels) = session.into_parts();
        let (report, reports) = unbounded_channel();
        let mut this = Multichannel {
            parts,
            binder,
            settings,
            lanes: Vec::new(),
            waiting: HashMap::new(),
            again: VecDeque::new(),
            events: VecDeque::new(),
            reports,
            report,
            sequence: Arc::default(),
            joining: 0,
            next_id: 0,
            next_channel: 0,
            chosen: 0,
            rows: Vec::new(),
            refused: Ended::default(),
            gone: None,
        };
        for channel in channels {
            let number = this.next_channel;
            this.next_channel += 1;
            this.begin(number, channel);
        }
        this
    }

    /// The session's number.
    pub fn session_id(&self) -> u64 {
        self.parts.ids().0
    }

    /// What was negotiated.
    pub fn negotiated(&self) -> &Negotiated {
        self.parts.negotiated()
    }

    /// The number of the next open, for rows.
    pub fn next_handle(&mut self) -> u64 {
        self.parts.next_handle()
    }

    /// Begins to connect and bind another connection to this address; [`Event::Joined`] or
    /// [`Event::Refused`] follows. Returns its number.
    pub fn join(&mut self, to: SocketAddr) -> u32 {
        let channel = self.next_channel;
        self.next_channel += 1;
        self.joining += 1;
        let (report, limit) = (self.report.clone(), self.settings.timeout);
        let binder = match &self.binder {
            Ok(binder) => binder.clone(),
            Err(error) => {
                let error = ClientError::NoMultichannel(error.to_string());
                let bound = Report::Bound { channel, to, bound: Err(error), slot: None };
                // The receiver is this value's own.
                let _ = report.send(bound);
                return channel;
            }
        };
        tokio::spawn(async move {
            let mut slot = None;
            let binding = binder.bind(channel, Some(to), &mut slot);
            let bound = match tokio::time::timeout(limit, binding).await {
                Ok(bound) => bound,
                Err(_) => Err(ClientError::Timeout(limit)),
            };
            let slot = slot.map(Box::new);
            let _ = report.send(Report::Bound { channel, to, bound, slot });
        });
        channel
    }

    /// Whether another request may be sent: a connection has fewer in flight than its depth, with
    /// [`Choice::RoundRobin`] the one whose turn it is.
    pub fn has_room(&self) -> bool {
        let depth = self.settings.depth;
        match self.settings.choice {
            Choice::LeastInFlight => {
                self.lanes.iter().any(|lane| lane.is_alive() && lane.in_flight < depth)
            }
            Choice::RoundRobin => self
                .choose()
                .and_then(|lane| self.lanes.get(lane))
                .is_some_and(|lane| lane.in_flight < depth),
        }
    }

    /// Sends a request on one of the connections; returns its number. [`Event::Done`] follows.
    pub fn submit(&mut self, request: Arc<dyn Request>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let since = Instant::now();
        self.waiting.insert(id, Waiting { request, lane: None, replay: false, since });
        self.send(id);
        id
    }

    /// Requests that have no answer yet.
    pub fn unanswered(&self) -> usize {
        self.waiting.len()
    }

    /// Connections that are being bound.
    pub fn joining(&self) -> usize {
        self.joining
    }

    /// Sends a request and waits for its answer. Other events are kept for [`Multichannel::next`].
    ///
    /// # Errors
    /// As [`Multichannel::next`].
    pub async fn call(&mut self, request: Arc<dyn Request>) -> Result<Reply, ClientError> {
        let id = self.submit(request);
        loop {
            match self.receive().await? {
                Event::Done { id: answered, reply, .. } if answered == id => return Ok(reply),
                other => self.events.push_back(other),
            }
        }
    }

    /// The next event. The future may be dropped at any time.
    ///
    /// # Errors
    /// All connections are lost, which holds from then on, or a request has no answer within the timeout.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        match self.events.pop_front() {
            Some(event) => Ok(event),
            None => self.receive().await,
        }
    }

    /// An event that is already there, and was kept by [`Multichannel::call`].
    pub fn kept_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    async fn receive(&mut self) -> Result<Event, ClientError> {
        loop {
            // Nothing answers any more, so that waiting would never end.
            if let Some(reason) = &self.gone {
                return Err(ClientError::AllLost(reason.clone()));
            }
            self.send_again();
            let due = self.again.front().map(|(due, _)| *due);
            let report = match due {
                None => self.reports.recv().await,
                Some(due) => match tokio::time::timeout_at(due, self.reports.recv()).await {
                    Ok(report) => report,
                    Err(_) => continue,
                },
            };
            // This value has a sender itself, so that there is always a report.
            let Some(report) = report else {
                return Err(ClientError::Protocol("the connections' tasks are gone".into()));
            };
            if let Some(event) = self.take(report)? {
                return Ok(event);
            }
        }
    }

    /// Processes what a connection's task reports.
    fn take(&mut self, report: Report) -> Result<Option<Event>, ClientError> {
        match report {
            Report::Done { lane, id, reply, is_intact, rows } => {
                self.rows.extend(rows);
                let Some(waiting) = self.waiting.get(&id) else { return Ok(None) };
                // An answer that arrived before the connection was lost counts; its repetition is not awaited.
                let bytes = waiting.request.payload_bytes();
                let data = waiting.request.data_bytes();
                if let Some(lane) = waiting.lane.and_then(|lane| self.lanes.get_mut(lane)) {
                    lane.in_flight = lane.in_flight.saturating_sub(1);
                    lane.state.in_flight_bytes =
                        lane.state.in_flight_bytes.saturating_sub(u64::from(bytes));
                }
                if reply.status == Status::FILE_NOT_AVAILABLE {
                    return self.refused_as_old(id).map(|()| None);
                }
                self.waiting.remove(&id);
                let Some(lane) = self.lanes.get_mut(lane) else { return Ok(None) };
                lane.state.requests += 1;
                lane.state.bytes += u64::from(data);
                let channel = lane.state.channel;
                Ok(Some(Event::Done { id, channel, reply, is_intact }))
            }
            Report::Lost { lane, channel, error, at } => {
                self.rows.extend(self.parts.lost(*channel));
                Ok(Some(self.lost(lane, error, at)))
            }
            Report::Bound { channel, to, bound, slot } => {
                self.joining -= 1;
                Ok(Some(match (bound, slot) {
                    (Ok(()), Some(connection)) => {
                        self.begin(channel, *connection);
                        Event::Joined { channel, to }
                    }
                    (bound, slot) => {
                        let state = slot.map(|mut connection| {
                            let state = Box::new(ChannelState::new(channel, &connection));
                            let (rows, table) = connection.end("reset");
                            self.rows.extend(rows);
                            self.refused.connections.push(table);
                            state
                        });
                        let gone = || ClientError::Protocol("there is no connection".into());
                        let error = bound.err().unwrap_or_else(gone);
                        Event::Refused { channel, to, state, error }
                    }
                }))
            }
        }
    }

    /// The server has not executed a request because it came with an older ChannelSequence, or because the request
    /// that it repeats is still at work (STATUS_FILE_NOT_AVAILABLE, MS-SMB2 section 3.3.5.2.10).
    fn refused_as_old(&mut self, id: u64) -> Result<(), ClientError> {
        let limit = self.settings.timeout;
        let Some(waiting) = self.waiting.get_mut(&id) else { return Ok(()) };
        if waiting.since.elapsed() > limit {
            return Err(ClientError::Timeout(limit));
        }
        waiting.lane = None;
        self.again.push_back((Instant::now() + REPEAT_PAUSE, id));
        Ok(())
    }

    /// A connection is lost: its requests go to others, if there is one.
    fn lost(&mut self, index: usize, error: ClientError, at: i64) -> Event {
        let channel = match self.lanes.get_mut(index) {
            None => 0,
            Some(lane) => {
                lane.jobs = None;
                lane.socket = None;
                lane.in_flight = 0;
                lane.state.in_flight_bytes = 0;
                lane.state.lost_at = Some(at);
                lane.state.channel
            }
        };
        // From now on requests carry the next sequence, so that the server refuses what it still finds of the lost
        // connection's.
        self.sequence.fetch_add(1, Ordering::SeqCst);
        let mut repeated: Vec<u64> = Vec::new();
        for (id, waiting) in &mut self.waiting {
            if waiting.lane == Some(index) {
                waiting.lane = None;
                waiting.replay = waiting.request.is_marked();
                repeated.push(*id);
            }
        }
        repeated.sort_unstable();
        if !self.lanes.iter().any(Lane::is_alive) {
            self.gone = Some(error.to_string());
            return Event::Lost { channel, repeated: 0, is_last: true, error };
        }
        let now = Instant::now();
        self.again.extend(repeated.iter().map(|&id| (now, id)));
        self.send_again();
        Event::Lost { channel, repeated: repeated.len(), is_last: false, error }
    }

    /// Sends the requests that are due again.
    fn send_again(&mut self) {
        let now = Instant::now();
        while let Some(&(due, id)) = self.again.front()
            && due <= now
        {
            self.again.pop_front();
            self.send(id);
        }
    }

    fn send(&mut self, id: u64) {
        let chosen = self.choose();
        let (Some(index), Some(waiting)) = (chosen, self.waiting.get_mut(&id)) else { return };
        let Some(lane) = self.lanes.get_mut(index) else { return };
        waiting.lane = Some(index);
        lane.in_flight += 1;
        lane.state.in_flight_bytes += u64::from(waiting.request.payload_bytes());
        self.chosen += 1;
        lane.chosen = self.chosen;
        let job = Job { id, request: waiting.request.clone(), replay: waiting.replay };
        if let Some(jobs) = &lane.jobs {
            // A task that has ended reports that its connection is lost; its requests are repeated then.
            let _ = jobs.send(job);
        }
    }

    /// Index of the connection for the next request.
    fn choose(&self) -> Option<usize> {
        let alive = self.lanes.iter().enumerate().filter(|(_, lane)| lane.is_alive());
        let chosen = match self.settings.choice {
            Choice::LeastInFlight => {
                alive.min_by_key(|(_, lane)| (lane.state.in_flight_bytes, lane.chosen))
            }
            Choice::RoundRobin => alive.min_by_key(|(_, lane)| lane.chosen),
        };
        chosen.map(|(index, _)| index)
    }

    /// Starts the task of a connection that is ready.
    fn begin(&mut self, number: u32, mut channel: Channel) {
        let state = ChannelState::new(number, &channel);
        self.rows.extend(channel.take_rows());
        channel.scene = self.settings.scene;
        let socket = channel.socket().cloned();
        let (jobs, received) = unbounded_channel();
        let task = channel_task::ChannelTask {
            index: self.lanes.len(),
            ids: self.parts.ids(),
            jobs: received,
            report: self.report.clone(),
            sequence: self.sequence.clone(),
            timeout: self.settings.timeout,
        };
        let task = Some(tokio::spawn(task.run(channel)));
        let jobs = Some(jobs);
        self.lanes.push(Lane { state, jobs, task, socket, in_flight: 0, chosen: 0 });
    }

    /// What each connection that was bound has done so far.
    pub fn states(&self) -> Vec<ChannelState> {
        let state = |lane: &Lane| ChannelState {
            tcp: lane.socket.as_ref().and_then(|socket| socket.state()),
            ..lane.state.clone()
        };
        self.lanes.iter().map(state).collect()
    }

    /// Rows that ended since the last time.
    pub fn take_rows(&mut self) -> Vec<Box<Row>> {
        std::mem::take(&mut self.rows)
    }

    /// Logs off and ends the connections, with the rows of that.
    pub async fn close(mut self) -> Ended {
        let mut channels = Vec::new();
        for lane in &mut self.lanes {
            lane.socket = None;
            lane.jobs = None;
        }
        for lane in &mut self.lanes {
            let Some(mut task) = lane.task.take() else { continue };
            match tokio::time::timeout(CLOSE_TIMEOUT, &mut task).await {
                Ok(Ok(Some(channel))) => channels.push(channel),
                Ok(_) => {}
                Err(_) => task.abort(),
            }
        }
        // Bindings in flight end soon, and their connections have rows too.
        let give_up_at = Instant::now() + CLOSE_TIMEOUT;
        loop {
            let report = match self.joining {
                0 => self.reports.try_recv().ok(),
                _ => tokio::time::timeout_at(give_up_at, self.reports.recv()).await.ok().flatten(),
            };
            match report {
                None => break,
                Some(Report::Done { rows, .. }) => self.rows.extend(rows),
                Some(Report::Lost { channel, .. }) => self.rows.extend(self.parts.lost(*channel)),
                Some(Report::Bound { slot, .. }) => {
                    self.joining -= 1;
                    if let Some(mut channel) = slot {
                        let (rows, table) = channel.end("reset");
                        self.rows.extend(rows);
                        self.refused.connections.push(table);
                    }
                }
            }
        }
        let mut ended = self.parts.close(channels).await;
        self.rows.append(&mut ended.rows);
        ended.rows = self.rows;
        ended.connections.append(&mut self.refused.connections);
        ended.connections.sort_by_key(|connection| connection.connection);
        ended
    }
}
