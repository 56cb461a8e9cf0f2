//! The control connection: messages with a length and an HMAC over direction, number and text, so that
//! a message that was added, changed, repeated or reordered on the path is refused.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::NetError;
use super::handshake::{Key, Side};
use super::message::Message;
use super::token::{is_proof, proof};

/// Longest text of a message: intervals of 128 streams need a third of it.
pub(super) const MESSAGE_MAX: usize = 256 << 10;
const LENGTH_BYTES: usize = 4;
const PROOF_BYTES: usize = 32;

/// Cuts received bytes into messages.
pub(super) struct Framer {
    key: Key,
    /// The side that sends these messages.
    from: Side,
    number: u64,
    buffer: Vec<u8>,
}

impl Framer {
    pub(super) fn new(key: &Key, from: Side) -> Framer {
        Framer { key: *key, from, number: 0, buffer: Vec::new() }
    }

    /// Adds bytes. The buffer never exceeds the longest message and one piece.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.buffer.len() > LENGTH_BYTES + PROOF_BYTES + MESSAGE_MAX {
            return Err("messages arrive faster than they are read".to_owned());
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next complete message.
    pub(super) fn message(&mut self) -> Result<Option<Message>, String> {
        let Some((length, rest)) = self.buffer.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MESSAGE_MAX {
            return Err(format!("it has {length} bytes, at most {MESSAGE_MAX} are possible"));
        }
        let Some((claimed, rest)) = rest.split_at_checked(PROOF_BYTES) else { return Ok(None) };
        let Some(text) = rest.get(..length) else { return Ok(None) };
        if !is_proof(&self.key, &parts(self.from, &self.number.to_be_bytes(), text), claimed) {
            return Err("it was changed on the way, or comes from somebody else".to_owned());
        }
        let message = Message::parse(text).map_err(|error| error.to_string())?;
        self.number += 1;
        self.buffer.drain(..LENGTH_BYTES + PROOF_BYTES + length);
        Ok(Some(message))
    }
}

fn parts<'a>(from: Side, number: &'a [u8; 8], text: &'a [u8]) -> [&'a [u8]; 3] {
    let from: &[u8] = match from {
        Side::Sender => b"from sender",
        Side::Listener => b"from listener",
    };
    [from, number, text]
}

/// One side of the control connection.
pub(super) struct Control {
    stream: TcpStream,
    peer: String,
    key: Key,
    side: Side,
    sent: u64,
    framer: Framer,
}

impl Control {
    pub(super) fn new(stream: TcpStream, peer: String, key: Key, side: Side) -> Control {
        let other = match side {
            Side::Sender => Side::Listener,
            Side::Listener => Side::Sender,
        };
        // Messages are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(Duration::from_secs(10)));
        Control { stream, peer, key, side, sent: 0, framer: Framer::new(&key, other) }
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    fn failed(&self, error: io::Error) -> NetError {
        NetError::Connection(self.peer.clone(), error)
    }

    pub(super) fn send(&mut self, message: &Message) -> Result<(), NetError> {
        let text = serde_json::to_vec(message).map_err(|error| self.failed(error.into()))?;
        let proof = proof(&self.key, &parts(self.side, &self.sent.to_be_bytes(), &text));
        let mut bytes = Vec::with_capacity(LENGTH_BYTES + PROOF_BYTES + text.len());
        bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(&proof);
        bytes.extend_from_slice(&text);
        self.sent += 1;
        self.stream.write_all(&bytes).map_err(|error| self.failed(error))
    }

    /// The next message, if one arrives within `wait`. An abort of the other side is an error.
    pub(super) fn poll(&mut self, wait: Duration) -> Result<Option<Message>, NetError> {
        let deadline = Instant::now() + wait;
        loop {
            let message = self.framer.message();
            match message.map_err(|why| NetError::Message(self.peer.clone(), why))? {
                Some(Message::Abort { reason }) => {
                    let reason = reason.chars().take(300).collect::<String>();
                    return Err(NetError::Left(self.peer.clone(), format!(": {reason}")));
                }
                Some(message) => return Ok(Some(message)),
                None => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut piece = [0; 16 << 10];
            let timeout = Some(left.max(Duration::from_millis(1)));
            self.stream.set_read_timeout(timeout).map_err(|error| self.failed(error))?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(NetError::Left(self.peer.clone(), String::new())),
                Ok(read) => {
                    let taken = self.framer.take(piece.get(..read).unwrap_or_default());
                    taken.map_err(|why| NetError::Message(self.peer.clone(), why))?;
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Waits for a message, for `wait` at most, while `stopped` is false.
    pub(super) fn wait(
        &mut self,
        wait: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Message, NetError> {
        let deadline = Instant::now() + wait;
        while Instant::now() < deadline {
            if stopped() {
                return Err(NetError::Interrupted);
            }
            if let Some(message) = self.poll(Duration::from_millis(100))? {
                return Ok(message);
            }
        }
        Err(NetError::Stalled(self.peer.clone(), wait.as_secs()))
    }

    /// An error for a message that does not belong here.
    pub(super) fn unexpected(&self, message: &Message) -> NetError {
        let text = format!("{message:?}").chars().take(60).collect::<String>();
        NetError::Message(self.peer.clone(), format!("`{text}` is not expected now"))
    }

    /// Says why the test ends, if the other side still listens.
    pub(super) fn abort(&mut self, error: &NetError) {
        let _ = self.send(&Message::Abort { reason: error.to_string() });
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// Whether a read or write only took longer than its timeout.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(key: &Key, from: Side, number: u64, text: &[u8]) -> Vec<u8> {
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend(proof(key, &parts(from, &number.to_be_bytes(), text)));
        bytes.extend(text);
        bytes
    }

    #[test]
    fn messages_arrive_in_pieces_of_any_size() {
        let key = [5; 32];
        let text = serde_json::to_vec(&Message::Ready).unwrap();
        let mut bytes = frame(&key, Side::Listener, 0, &text);
        bytes.extend(frame(&key, Side::Listener, 1, &text));
        for size in [1, 7, bytes.len()] {
            let mut framer = Framer::new(&key, Side::Listener);
            let mut seen = 0;
            for piece in bytes.chunks(size) {
                framer.take(piece).unwrap();
                while let Some(message) = framer.message().unwrap() {
                    assert_eq!(message, Message::Ready);
                    seen += 1;
                }
            }
            assert_eq!(seen, 2);
        }
    }

    #[test]
    fn changed_repeated_and_reflected_messages_are_refused() {
        let key = [5; 32];
        let text = serde_json::to_vec(&Message::Go).unwrap();
        let good = frame(&key, Side::Sender, 0, &text);
        let mut changed = good.clone();
        *changed.last_mut().unwrap() ^= 1;
        let reflected = frame(&key, Side::Listener, 0, &text);
        for bytes in [changed, reflected, frame(&[6; 32], Side::Sender, 0, &text)] {
            let mut framer = Framer::new(&key, Side::Sender);
            framer.take(&bytes).unwrap();
            assert!(framer.message().is_err());
        }
        let mut framer = Framer::new(&key, Side::Sender);
        framer.take(&good).unwrap();
        assert_eq!(framer.message().unwrap(), Some(Message::Go));
        framer.take(&good).unwrap();
        assert!(framer.message().is_err(), "a repetition");
    }

    #[test]
    fn long_messages_are_refused_before_they_are_kept() {
        let mut framer = Framer::new(&[5; 32], Side::Sender);
        framer.take(&[0xff; 4]).unwrap();
        assert!(framer.message().unwrap_err().contains("at most"));
        let mut framer = Framer::new(&[5; 32], Side::Sender);
        framer.take(&(MESSAGE_MAX as u32).to_be_bytes()).unwrap();
        let piece = vec![0; 64 << 10];
        while framer.take(&piece).is_ok() {}
        assert!(framer.buffer.len() < MESSAGE_MAX + (128 << 10));
    }
}
