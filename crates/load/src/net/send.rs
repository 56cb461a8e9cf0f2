//! The side that runs the test: connects to `net listen` and does what the [`Spec`] says.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use smbscope_tables::tables::NetInterval;

use super::NetError;
use super::control::Control;
use super::handshake::{
    CHALLENGE_BYTES, Challenge, Key, Purpose, Response, Side, VERDICT_BYTES, Verdict,
};
use super::message::{Interval, Message, SideReport, VERSION};
use super::phase::{self, Ends as PhaseEnds, Stream};
use super::result::{Ends, Outcome, Phase, wall_clock};
use super::round_trips;
use super::spec::{Direction, Spec};
use super::token::{Token, proof, random};
use std::io::{Read as _, Write as _};

/// Time for a connection, and for the next message.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time for the listener's part of a phase, after this side's is complete.
const LAST: Duration = Duration::from_secs(120);

/// Whom to send to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name or address, as given.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Target {
    pub(super) fn name(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Connects to the first address that answers.
    pub(super) fn connect(&self, program: &'static str) -> Result<TcpStream, NetError> {
        let name = self.name();
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        let addresses = addresses.map_err(|error| NetError::Resolve(name.clone(), error))?;
        let mut failed = std::io::Error::other("the name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(NetError::Connect(name, failed, program))
    }
}

/// Follows a test.
pub trait Observer {
    /// A phase begins.
    fn phase(&mut self, _directions: &[Direction]) {}
    /// Intervals ended.
    fn intervals(&mut self, _rows: &[NetInterval]) {}
    /// Whether the user wants to end.
    fn stopped(&self) -> bool {
        false
    }
}

/// Recognises this machine without naming it: a hash of its boot id.
pub(super) fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let hash = proof(b"smbscope net", &[boot.trim().as_bytes()]);
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Runs the test. `recording` names its rows.
pub fn run(
    target: &Target,
    token: &Token,
    spec: &Spec,
    recording: &str,
    observer: &mut dyn Observer,
) -> Result<Outcome, NetError> {
    spec.check()?;
    let stream = target.connect("smbscope net listen")?;
    let name = target.name();
    let failed = |error| NetError::Connection(name.clone(), error);
    let (peer, local) = (stream.peer_addr().map_err(failed)?, stream.local_addr().map_err(failed)?);
    let (stream, key) = introduce(stream, &name, Purpose::Control, token.key(), Some(token))?;
    let mut control = Control::new(stream, name.clone(), key, Side::Sender);
    let begin = Message::Begin { version: VERSION, spec: spec.clone(), machine: machine() };
    control.send(&begin)?;
    let other = match control.wait(PATIENCE, &|| observer.stopped())? {
        Message::Begun { machine, .. } => machine,
        other => return Err(control.unexpected(&other)),
    };
    let ends = Ends {
        recording: recording.to_owned(),
        tool: "smbscope",
        local: local.ip().to_string(),
        remote: peer.ip().to_string(),
        same_machine: other == machine(),
    };
    let mut test = Test { control, peer, name, key, ends, spec, outcome: Outcome::default() };
    let done = test.run(observer);
    if let Err(error) = &done {
        test.control.abort(error);
    }
    done.map(|()| test.outcome)
}

/// Proves the key on a new connection, and lets the listener prove it. With a token, returns the key of
/// the test that begins.
fn introduce(
    mut stream: TcpStream,
    name: &str,
    purpose: Purpose,
    key: &[u8],
    token: Option<&Token>,
) -> Result<(TcpStream, Key), NetError> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset => {
            NetError::NotListener(name.to_owned(), "it ended the connection")
        }
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            NetError::NotListener(name.to_owned(), "it does not answer")
        }
        _ => NetError::Connection(name.to_owned(), error),
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut challenge = [0; CHALLENGE_BYTES];
    stream.read_exact(&mut challenge).map_err(failed)?;
    let stranger = || NetError::NotListener(name.to_owned(), "it speaks another protocol");
    let challenge = Challenge::parse(&challenge).ok_or_else(stranger)?;
    let mut nonce = [0; 32];
    random(&mut nonce)?;
    let response = Response::new(key, &challenge, purpose, nonce);
    stream.write_all(&response.bytes()).map_err(failed)?;
    let mut verdict = [0; VERDICT_BYTES];
    stream.read_exact(&mut verdict).map_err(failed)?;
    match response.verdict(key, &challenge, &verdict) {
        Some(Verdict::Accepted) => {}
        Some(Verdict::Refused) => return Err(NetError::Refused(name.to_owned())),
        Some(Verdict::Busy) => return Err(NetError::Busy(name.to_owned())),
        None => return Err(NetError::NotListener(name.to_owned(), "it does not know the token")),
    }
    let key = token.map_or([0; 32], |token| response.test_key(token, &challenge));
    Ok((stream, key))
}

struct Test<'a> {
    control: Control,
    peer: SocketAddr,
    name: String,
    key: Key,
    ends: Ends,
    spec: &'a Spec,
    outcome: Outcome,
}

impl Test<'_> {
    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), NetError> {
        if self.spec.round_trips > 0 {
            self.round_trips(observer)?;
        }
        for (place, directions) in self.spec.phases().into_iter().enumerate() {
            observer.phase(&directions);
            let phase = self.phase(place as u32, directions, observer)?;
            self.outcome.tests.extend(self.ends.tests(self.spec, &phase));
        }
        self.control.send(&Message::Done)
    }

    fn connect(&self, purpose: Purpose) -> Result<TcpStream, NetError> {
        let stream = TcpStream::connect_timeout(&self.peer, PATIENCE);
        let stream = stream
            .map_err(|error| NetError::Connect(self.name.clone(), error, "smbscope net listen"))?;
        introduce(stream, &self.name, purpose, &self.key, None).map(|(stream, _)| stream)
    }

    fn round_trips(&mut self, observer: &mut dyn Observer) -> Result<(), NetError> {
        self.control.send(&Message::RoundTrips)?;
        let mut stream = self.connect(Purpose::RoundTrips)?;
        let started_at = wall_clock();
        let stopped = || observer.stopped();
        let list = round_trips::measure(&mut stream, self.spec.round_trips, &stopped);
        let limit = round_trips::TIMEOUT.as_secs();
        let list = list.map_err(|error| NetError::of_connection(&self.name, error, limit))?;
        if observer.stopped() {
            return Err(NetError::Interrupted);
        }
        self.outcome.round_trips = self.ends.round_trips(started_at, &list);
        Ok(())
    }

    fn phase(
        &mut self,
        place: u32,
        directions: Vec<Direction>,
        observer: &mut dyn Observer,
    ) -> Result<Phase, NetError> {
        let number = u64::from(place) + 1;
        self.control.send(&Message::Phase { phase: place })?;
        let mut streams = Vec::new();
        for (of, direction) in directions.iter().enumerate() {
            for number in 0..self.spec.streams {
                let stream =
                    self.connect(Purpose::Stream(of as u32 * self.spec.streams + number))?;
                let sends = *direction == Direction::Send;
                streams.push(Stream { direction: *direction, number, stream, sends });
            }
        }
        match self.control.wait(PATIENCE, &|| observer.stopped())? {
            Message::Ready => {}
            other => return Err(self.control.unexpected(&other)),
        }
        self.control.send(&Message::Go)?;
        let started_at = wall_clock();
        let mut all: Vec<Interval> = Vec::new();
        let mut peer: Option<SideReport> = None;
        let (control, ends) = (&mut self.control, &self.ends);
        let rows = &mut self.outcome.intervals;
        let mut take = |list: Vec<Interval>, observer: &mut dyn Observer| {
            let new = ends.intervals(number, started_at, &list);
            observer.intervals(&new);
            rows.extend(new);
            all.extend(list);
        };
        let mut hear = |message: Message, control: &Control| match message {
            Message::PhaseEnd { report } => {
                peer = Some(report);
                Ok(Vec::new())
            }
            Message::Intervals { intervals } => Ok(intervals),
            other => Err(control.unexpected(&other)),
        };
        let own = phase::run(
            self.spec,
            streams,
            PhaseEnds::WithStreams,
            &self.name,
            &mut |list, wait| {
                if observer.stopped() {
                    return Err(NetError::Interrupted);
                }
                if !list.is_empty() {
                    take(list, observer);
                }
                if let Some(message) = control.poll(wait)? {
                    let list = hear(message, control)?;
                    take(list, observer);
                }
                Ok(())
            },
        )?;
        let peer = loop {
            if let Some(peer) = peer.take() {
                break peer;
            }
            let message = control.wait(LAST, &|| observer.stopped())?;
            let mut ended = None;
            match message {
                Message::PhaseEnd { report } => ended = Some(report),
                Message::Intervals { intervals } => take(intervals, observer),
                other => return Err(control.unexpected(&other)),
            }
            if let Some(report) = ended {
                break report;
            }
        };
        Ok(Phase { number, directions, started_at, own, peer, intervals: all })
    }
}
