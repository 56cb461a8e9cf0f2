//! Small messages back and forth over an idle connection, as large as SMB's Read and Write of the same
//! payload (MS-SMB2 sections 2.2.1 and 2.2.19 to 2.2.22, with the transport's 4 bytes of section 2.1).

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::percentile::percentile;
use super::stream::{content, nanoseconds};

/// Header of the transport and of SMB.
const HEADERS: u32 = 4 + 64;
/// Fixed parts of Read and Write: request, response.
const READ: (u32, u32) = (HEADERS + 49, HEADERS + 16);
const WRITE: (u32, u32) = (HEADERS + 48, HEADERS + 17);
/// Both messages of an echo.
const ECHO: u32 = 64;
/// Payloads of Read and Write.
const PAYLOADS: [u32; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Longest message that the listener takes or sends.
const MESSAGE_MAX: u32 = 1 << 20;
/// Round trips before the measurement.
const WARM_UP: u32 = 10;
/// Longest measurement of one size.
const TIME_MAX: Duration = Duration::from_secs(3);
/// Time without any byte after which the path is taken to be cut.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Round trips of one kind and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) kind: &'static str,
    pub(super) payload: u32,
    pub(super) request: u32,
    pub(super) response: u32,
    /// Since the start of all.
    pub(super) started: Duration,
    /// Sorted.
    pub(super) times: Vec<i64>,
}

impl Measured {
    pub(super) fn percentile(&self, percent: u32) -> i64 {
        percentile(&self.times, percent)
    }

    pub(super) fn mean(&self) -> i64 {
        let sum: i128 = self.times.iter().map(|ns| i128::from(*ns)).sum();
        i64::try_from(sum / (self.times.len().max(1) as i128)).unwrap_or(i64::MAX)
    }
}

/// Measures all kinds and sizes, `count` times each at most. `stopped` ends it early.
pub(super) fn measure(
    stream: &mut TcpStream,
    count: u32,
    stopped: &dyn Fn() -> bool,
) -> io::Result<Vec<Measured>> {
    prepare(stream)?;
    let begin = Instant::now();
    let reads = PAYLOADS.map(|payload| ("read", payload, READ.0, READ.1 + payload));
    let writes = PAYLOADS.map(|payload| ("write", payload, WRITE.0 + payload, WRITE.1));
    let mut all = vec![("echo", 0, ECHO, ECHO)];
    all.extend(reads.into_iter().chain(writes));
    let mut list = Vec::new();
    for (kind, payload, request, response) in all {
        let started = begin.elapsed();
        let mut message = content(request as usize);
        for (to, from) in
            message.iter_mut().zip([request, response].into_iter().flat_map(u32::to_be_bytes))
        {
            *to = from;
        }
        let mut answer = vec![0; response as usize];
        let mut times = Vec::new();
        let one = Instant::now();
        for number in 0..WARM_UP + count {
            let sent = Instant::now();
            stream.write_all(&message)?;
            stream.read_exact(&mut answer)?;
            if number >= WARM_UP {
                times.push(nanoseconds(sent.elapsed()));
            }
            if one.elapsed() > TIME_MAX && !times.is_empty() || stopped() {
                break;
            }
        }
        times.sort_unstable();
        list.push(Measured { kind, payload, request, response, started, times });
    }
    Ok(list)
}

/// Answers until the sender ends the connection.
pub(super) fn serve(stream: &mut TcpStream) -> io::Result<()> {
    prepare(stream)?;
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a round trip with a wrong length");
    let mut request = vec![0; MESSAGE_MAX as usize];
    let response = content(MESSAGE_MAX as usize);
    // One read for a short request: a second one would be part of the round trip.
    let mut filled = 0;
    loop {
        let room = request.get_mut(filled..).filter(|room| !room.is_empty()).ok_or_else(wrong)?;
        match stream.read(room) {
            Ok(0) if filled == 0 => return Ok(()),
            Ok(0) => return Err(wrong()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let Some([a, b, c, d, e, f, g, h]) = request.first_chunk().filter(|_| filled >= 8) else {
            continue;
        };
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let wanted = u32::from_be_bytes([*e, *f, *g, *h]) as usize;
        // The sender has one message in flight.
        if length < 8 || length > request.len() || filled > length {
            return Err(wrong());
        }
        if filled == length {
            stream.write_all(response.get(..wanted).ok_or_else(wrong)?)?;
            filled = 0;
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))
}
