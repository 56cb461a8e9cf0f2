//! The side that waits: serves one test of one sender that knows the token, then ends.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use super::NetError;
use super::accept::Acceptor;
use super::control::Control;
use super::handshake::{Purpose, Side};
use super::message::{Message, SideReport, VERSION};
use super::phase::{self, Ends, Stream};
use super::result::rate;
use super::round_trips;
use super::send::machine;
use super::spec::{Direction, Spec};
use super::token::Token;

/// Time for the next message, or for the next stream, of a sender that is not sending.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for one test.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
}

/// What was served.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// Address of the sender.
    pub sender: String,
    /// For each phase: direction, streams, bytes and bits per second at this side.
    pub phases: Vec<ServedPhase>,
    /// Connections with a wrong token.
    pub refused: u64,
    /// Connections that did not speak the protocol, or came while a test ran.
    pub strangers: u64,
}

/// One direction of one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedPhase {
    /// Direction, seen from the sender.
    pub direction: Direction,
    /// Streams.
    pub streams: u64,
    /// Bytes read, or written, by this side.
    pub bytes: u64,
    /// Bits per second.
    pub bits_per_second: f64,
}

impl Listener {
    /// Listens on one address; port 0 takes any free one.
    pub fn bind(address: SocketAddr) -> Result<Listener, NetError> {
        if address.ip().is_unspecified() {
            return Err(NetError::AllAddresses(address));
        }
        let listener =
            TcpListener::bind(address).map_err(|error| NetError::Bind(address, error))?;
        let address = listener.local_addr().map_err(|error| NetError::Bind(address, error))?;
        Ok(Listener { listener, address, token: Token::random()? })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the sender has to know.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Serves one test. `wait` is the time for its sender to come. `counted` gets the numbers of
    /// refused connections even if the test fails.
    pub fn serve(
        self,
        wait: Duration,
        stopped: &dyn Fn() -> bool,
        counted: &mut dyn FnMut(u64, u64),
    ) -> Result<Served, NetError> {
        let mut acceptor = Acceptor::new(self.listener, self.token)?;
        let served = serve(&mut acceptor, wait, stopped);
        counted(acceptor.refused, acceptor.strangers);
        served
    }
}

fn serve(
    acceptor: &mut Acceptor,
    wait: Duration,
    stopped: &dyn Fn() -> bool,
) -> Result<Served, NetError> {
    let (stream, address, key) = acceptor.sender(wait, stopped)?;
    let mut control = Control::new(stream, address.to_string(), key, Side::Listener);
    let served = converse(acceptor, &mut control, stopped);
    if let Err(error) = &served {
        control.abort(error);
    }
    let phases = served?;
    Ok(Served {
        sender: address.to_string(),
        phases,
        refused: acceptor.refused,
        strangers: acceptor.strangers,
    })
}

fn converse(
    acceptor: &mut Acceptor,
    control: &mut Control,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<ServedPhase>, NetError> {
    let (version, spec) = match control.wait(PATIENCE, stopped)? {
        Message::Begin { version, spec, .. } => (version, spec),
        other => return Err(control.unexpected(&other)),
    };
    if version != VERSION {
        let why = format!(
            "its version is {version}, this one's {VERSION}: use the same smbscope on both"
        );
        return Err(NetError::Message(control.peer().to_owned(), why));
    }
    spec.check()?;
    control.send(&Message::Begun { version: VERSION, machine: machine() })?;
    let mut phases = Vec::new();
    loop {
        match control.wait(PATIENCE, stopped)? {
            Message::RoundTrips => answer(acceptor, control, stopped)?,
            Message::Phase { phase } => {
                let all = spec.phases();
                let Some(directions) = all.get(phase as usize) else {
                    return Err(control.unexpected(&Message::Phase { phase }));
                };
                let report = one(acceptor, control, &spec, directions, stopped)?;
                phases.extend(directions.iter().map(|direction| summary(*direction, &report)));
                control.send(&Message::PhaseEnd { report })?;
            }
            Message::Done => return Ok(phases),
            other => return Err(control.unexpected(&other)),
        }
    }
}

/// Answers round trips until the sender ends their connection.
fn answer(
    acceptor: &mut Acceptor,
    control: &Control,
    stopped: &dyn Fn() -> bool,
) -> Result<(), NetError> {
    let limit = round_trips::TIMEOUT.as_secs();
    let failed = |error| NetError::of_connection(control.peer(), error, limit);
    match acceptor.next(PATIENCE, stopped)? {
        Some((mut stream, Purpose::RoundTrips)) => round_trips::serve(&mut stream).map_err(failed),
        _ => Err(missing(control)),
    }
}

fn missing(control: &Control) -> NetError {
    NetError::Message(control.peer().to_owned(), "its data connections do not arrive".to_owned())
}

/// One phase: its streams come, data flows, this side's part is known.
fn one(
    acceptor: &mut Acceptor,
    control: &mut Control,
    spec: &Spec,
    directions: &[Direction],
    stopped: &dyn Fn() -> bool,
) -> Result<SideReport, NetError> {
    let mut streams: Vec<Stream> = Vec::new();
    while streams.len() < directions.len() * spec.streams as usize {
        let Some((stream, Purpose::Stream(number))) = acceptor.next(PATIENCE, stopped)? else {
            return Err(missing(control));
        };
        // Streams of the second direction continue the numbers of the first.
        let direction = directions.get((number / spec.streams) as usize);
        let direction = *direction.ok_or_else(|| missing(control))?;
        let number = number % spec.streams;
        if streams.iter().any(|one| (one.direction, one.number) == (direction, number)) {
            return Err(missing(control));
        }
        streams.push(Stream { direction, number, stream, sends: direction == Direction::Receive });
    }
    control.send(&Message::Ready)?;
    match control.wait(PATIENCE, stopped)? {
        Message::Go => {}
        other => return Err(control.unexpected(&other)),
    }
    let peer = control.peer().to_owned();
    phase::run(spec, streams, Ends::WithStreams, &peer, &mut |intervals, wait| {
        if stopped() {
            return Err(NetError::Interrupted);
        }
        if !intervals.is_empty() {
            control.send(&Message::Intervals { intervals })?;
        }
        match control.poll(wait)? {
            Some(other) => Err(control.unexpected(&other)),
            None => Ok(()),
        }
    })
}

fn summary(direction: Direction, report: &SideReport) -> ServedPhase {
    let moved = match direction {
        Direction::Send => &report.received,
        Direction::Receive => &report.sent,
    };
    let bytes = moved.iter().map(|one| one.bytes).sum();
    let first = moved.iter().map(|one| one.first_ns).min().unwrap_or(0);
    let last = moved.iter().map(|one| one.last_ns).max().unwrap_or(0);
    let streams = moved.len() as u64;
    ServedPhase { direction, streams, bytes, bits_per_second: rate(bytes, last - first) }
}
