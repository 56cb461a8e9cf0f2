//! Accepts connections of the one test and refuses all others.
//!
//! One thread follows all handshakes with buffers of fixed size, so a connection that says nothing
//! does not delay another one. At most [`PENDING_MAX`] handshakes are open: one more replaces the oldest of the
//! address that has the most. Wrong proofs and silent connections are counted.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::NetError;
use super::handshake::{Challenge, Key, Purpose, RESPONSE_BYTES, Response, Verdict};
use super::token::{Token, random};

/// Open handshakes.
const PENDING_MAX: usize = 64;
/// Time for a handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait between two looks at `stopped`.
const LOOK: Duration = Duration::from_millis(100);

struct Pending {
    stream: TcpStream,
    from: IpAddr,
    challenge: Challenge,
    buffer: [u8; RESPONSE_BYTES],
    filled: usize,
    until: Instant,
}

/// What became of the bytes that a handshake has so far.
enum Step {
    Waits,
    Complete(Response),
    Ended,
}

pub(super) struct Acceptor {
    listener: TcpListener,
    token: Token,
    /// The test's key, once its sender came.
    key: Option<Key>,
    pending: Vec<Pending>,
    /// Connections with a wrong token.
    pub(super) refused: u64,
    /// Connections that said nothing, something else, or came during a test.
    pub(super) strangers: u64,
}

impl Acceptor {
    pub(super) fn new(listener: TcpListener, token: Token) -> Result<Acceptor, NetError> {
        let nonblocking = listener.set_nonblocking(true);
        nonblocking.map_err(|error| NetError::System("socket", error))?;
        Ok(Acceptor { listener, token, key: None, pending: Vec::new(), refused: 0, strangers: 0 })
    }

    /// Waits for the sender of the test; its key is needed for other connections after that.
    pub(super) fn sender(
        &mut self,
        wait: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(TcpStream, SocketAddr, Key), NetError> {
        let missing = || NetError::NoSender(wait.as_secs());
        let (stream, _) = self.next(wait, stopped)?.ok_or_else(missing)?;
        let address = stream.peer_addr().map_err(|error| NetError::System("socket", error))?;
        // `next` set it with the first connection.
        let key = self.key.ok_or_else(missing)?;
        Ok((stream, address, key))
    }

    /// The next connection of the test; `None` if none comes in time.
    pub(super) fn next(
        &mut self,
        wait: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<(TcpStream, Purpose)>, NetError> {
        let deadline = Instant::now() + wait;
        loop {
            if stopped() {
                return Err(NetError::Interrupted);
            }
            self.accept()?;
            if let Some(entered) = self.advance() {
                return Ok(Some(entered));
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            self.sleep(LOOK.min(deadline - now))?;
        }
    }

    /// Waits until a socket has something.
    fn sleep(&self, wait: Duration) -> Result<(), NetError> {
        let sockets = self.pending.iter().map(|pending| pending.stream.as_fd());
        let all = std::iter::once(self.listener.as_fd()).chain(sockets);
        let mut all: Vec<PollFd> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let wait = PollTimeout::try_from(wait.max(Duration::from_millis(1)));
        match poll(&mut all, wait.unwrap_or(PollTimeout::ZERO)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(NetError::System("poll", error.into())),
        }
    }

    /// Accepts and challenges waiting connections; not more at once than have room.
    fn accept(&mut self) -> Result<(), NetError> {
        for _ in 0..PENDING_MAX {
            let (mut stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    // The connection ended before it was accepted, or descriptors are short.
                    ErrorKind::WouldBlock => return Ok(()),
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    _ => {
                        std::thread::sleep(Duration::from_millis(10));
                        return Ok(());
                    }
                },
            };
            let mut nonce = [0; 32];
            random(&mut nonce)?;
            let challenge = Challenge(nonce);
            // A new socket has room for 40 bytes.
            let is_sent = stream.set_nonblocking(true).is_ok()
                && stream
                    .write(&challenge.bytes())
                    .is_ok_and(|sent| sent == challenge.bytes().len());
            if !is_sent {
                self.strangers += 1;
                continue;
            }
            if self.pending.len() >= PENDING_MAX {
                self.evict();
            }
            let until = Instant::now() + PATIENCE;
            let buffer = [0; RESPONSE_BYTES];
            self.pending.push(Pending {
                stream,
                from: from.ip(),
                challenge,
                buffer,
                filled: 0,
                until,
            });
        }
        Ok(())
    }

    /// Removes the oldest handshake of the address that has the most.
    fn evict(&mut self) {
        let count = |from: IpAddr| self.pending.iter().filter(|one| one.from == from).count();
        let most = self.pending.iter().map(|one| count(one.from)).max();
        let oldest = self.pending.iter().position(|one| Some(count(one.from)) == most);
        if let Some(oldest) = oldest {
            self.pending.remove(oldest);
            self.strangers += 1;
        }
    }

    /// Reads what arrived; returns the first connection that belongs to the test.
    fn advance(&mut self) -> Option<(TcpStream, Purpose)> {
        let now = Instant::now();
        let mut place = 0;
        while let Some(one) = self.pending.get_mut(place) {
            let step = one.read();
            let response = match step {
                Step::Waits if now < one.until => {
                    place += 1;
                    continue;
                }
                Step::Waits | Step::Ended => {
                    self.pending.remove(place);
                    self.strangers += 1;
                    continue;
                }
                Step::Complete(response) => response,
            };
            let one = self.pending.remove(place);
            if let Some(entered) = self.judge(one, response) {
                return Some(entered);
            }
        }
        None
    }

    fn judge(&mut self, one: Pending, response: Response) -> Option<(TcpStream, Purpose)> {
        let Pending { mut stream, challenge, .. } = one;
        let mut refuse = |verdict: Verdict| {
            let _ = stream.write(&verdict.refusal());
        };
        let begins = response.purpose == Purpose::Control;
        let key = match (&self.key, begins) {
            (Some(_), true) => {
                self.strangers += 1;
                refuse(Verdict::Busy);
                return None;
            }
            (Some(key), false) => key.to_vec(),
            (None, _) => self.token.key().to_vec(),
        };
        // Without a test there is only its first connection.
        if !response.is_of(&key, &challenge) || (self.key.is_none() && !begins) {
            self.refused += 1;
            refuse(Verdict::Refused);
            return None;
        }
        if stream.set_nonblocking(false).is_err()
            || stream.write_all(&response.accept(&key, &challenge)).is_err()
        {
            self.strangers += 1;
            return None;
        }
        if begins {
            self.key = Some(response.test_key(&self.token, &challenge));
        }
        Some((stream, response.purpose))
    }
}

impl Pending {
    fn read(&mut self) -> Step {
        loop {
            let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
            if room.is_empty() {
                return Response::parse(&self.buffer).map_or(Step::Ended, Step::Complete);
            }
            match self.stream.read(room) {
                Ok(0) => return Step::Ended,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Waits,
                Err(_) => return Step::Ended,
            }
        }
    }
}
