//! Many requests per second: nothing is dropped.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::encode::{Body, Echo, Frame, Head, Negotiate};
use smbscope_wire::smb2::header::Header;
use smbscope_wire::smb2::negotiate::{Capabilities, SecurityMode};

use crate::recorder::{Recorder, alone};
use smbscope_testing::samba::samba;

const CONNECTIONS: usize = 3;
/// Requests in flight per connection.
const WINDOW: u64 = 64;
const SECONDS: u64 = 3;
/// Most requests per second and connection, so that a CPU is left for the recorder.
const RATE: u64 = 8_000;

/// A connection with only what an Echo needs: this measures the server and the probe.
pub struct Raw {
    stream: TcpStream,
    frame: Frame,
    next: u64,
}

impl Raw {
    fn connect(port: u16, number: u8) -> Raw {
        Raw::over(TcpStream::connect(("127.0.0.1", port)).unwrap(), number)
    }

    /// Negotiates on a connection.
    pub fn over(stream: TcpStream, number: u8) -> Raw {
        stream.set_nodelay(true).unwrap();
        let mut raw = Raw { stream, frame: Frame::new(), next: 0 };
        let negotiate = Negotiate {
            dialects: &[Dialect::SMB_2_1],
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities(0),
            // Connections of one client would share a process.
            client_guid: [number; 16],
            contexts: None,
        };
        let bytes = raw.request(&negotiate, 1);
        raw.stream.write_all(&bytes).unwrap();
        raw.reply();
        raw
    }

    /// One Echo and its reply.
    pub fn ask(&mut self) {
        let bytes = self.request(&Echo, 1);
        self.stream.write_all(&bytes).unwrap();
        self.reply();
    }

    fn request<B: Body>(&mut self, body: &B, credits: u16) -> Vec<u8> {
        let head = Head { message_id: self.next, credits, credit_charge: 1, ..Head::default() };
        self.next += 1;
        self.frame.clear();
        self.frame.member(&head, body);
        self.frame.plain().to_vec()
    }

    fn reply(&mut self) -> Header {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut bytes).unwrap();
        Header::parse(&bytes).unwrap()
    }

    /// Sends Echo in a closed loop for the given time; returns their number.
    fn echo(mut self, time: Duration) -> u64 {
        let begin = Instant::now();
        let first = self.request(&Echo, WINDOW as u16);
        self.stream.write_all(&first).unwrap();
        assert!(u64::from(self.reply().credits) >= WINDOW, "the server grants too few credits");
        let mut count = 1;
        let mut replies = vec![0; WINDOW as usize * (4 + 64 + 4)];
        while begin.elapsed() < time {
            let early = Duration::from_micros(count * 1_000_000 / RATE);
            std::thread::sleep(early.saturating_sub(begin.elapsed()));
            let requests: Vec<u8> = (0..WINDOW).flat_map(|_| self.request(&Echo, 1)).collect();
            self.stream.write_all(&requests).unwrap();
            self.stream.read_exact(&mut replies).unwrap();
            count += WINDOW;
        }
        count
    }
}

#[test]
fn nothing_is_dropped_at_20_000_requests_a_second() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::begin(&lab) else { return };
    let port = lab.port();
    let begin = Instant::now();
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|client| {
            std::thread::spawn(move || {
                Raw::connect(port, client as u8 + 1).echo(Duration::from_secs(SECONDS))
            })
        })
        .collect();
    let sent: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let rate = sent as f64 / begin.elapsed().as_secs_f64();
    eprintln!("{rate:.0} Echo a second");
    // It is asserted there that nothing was dropped.
    let recorded = recorder.end();
    eprintln!("{} events", recorded.progress.events);
    let rows = recorded.rows();
    let echoes = rows.iter().filter(|row| row.command == "Echo");
    assert_eq!(echoes.count() as u64, sent);
    assert_eq!(recorded.progress.without_slices, 0);
}
