//! A connection that delivers replies later than they arrive: a simple simulation of distance.
//!
//! It delays incoming bytes by a fixed time and knows nothing of windows, handshakes and loss; `wan`
//! simulates a link packet by packet.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::clock::Clock;

/// What one credit lets a server send (MS-SMB2 section 3.1.5.2), plus room for headers.
const CREDIT_BYTES: usize = (64 << 10) + 1024;
/// A server may grant more credits than were requested: at least this much may be in transit.
const ON_THE_WAY_BYTES_MIN: usize = 64 << 20;
const READ_BYTES: usize = 64 << 10;

/// See the module.
pub struct Delayed<T> {
    inner: T,
    delay: Duration,
    queue: VecDeque<(Instant, Vec<u8>)>,
    queued_bytes: usize,
    /// Limit on the delayed bytes. More bytes wait in the socket, and their delay begins when they are
    /// read; the limit is no less than what the connection can have in flight.
    queued_bytes_max: usize,
    ended: bool,
    clock: Clock,
    /// Timer for the head of the queue.
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl<T: AsyncRead + Unpin> Delayed<T> {
    /// Delays what `inner` delivers by `delay`, on a connection with the given number of credits.
    pub fn new(inner: T, delay: Duration, credits: u16, clock: Clock) -> Delayed<T> {
        let queue = VecDeque::new();
        let queued_bytes_max = (usize::from(credits) * CREDIT_BYTES).max(ON_THE_WAY_BYTES_MIN);
        let (queued_bytes, ended, wait) = (0, false, None);
        Delayed { inner, delay, queue, queued_bytes, queued_bytes_max, ended, clock, wait }
    }

    /// Moves arrived bytes into the queue.
    fn fill(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.ended && self.queued_bytes < self.queued_bytes_max {
            let mut bytes = [0; READ_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.inner).poll_read(context, &mut buffer) {
                Poll::Pending => break,
                Poll::Ready(done) => done?,
            }
            let bytes = buffer.filled().to_vec();
            self.ended = bytes.is_empty();
            self.queued_bytes += bytes.len();
            self.queue.push_back((Instant::now() + self.delay, bytes));
        }
        Ok(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Delayed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.fill(context)?;
        let Some(&(due, _)) = this.queue.front() else { return Poll::Pending };
        if due > Instant::now() {
            let clock = &this.clock;
            let wait = this.wait.get_or_insert_with(|| {
                let clock = clock.clone();
                Box::pin(async move { clock.wait(due).await })
            });
            ready!(wait.as_mut().poll(context));
        }
        this.wait = None;
        if let Some((_, bytes)) = this.queue.front_mut() {
            let count = bytes.len().min(out.remaining());
            out.put_slice(&bytes[..count]);
            bytes.drain(..count);
            this.queued_bytes -= count;
            if bytes.is_empty() {
                this.queue.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Delayed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn replies_are_delayed() {
        let (mut near, far) = tokio::io::duplex(1000);
        let mut far = Delayed::new(far, Duration::from_millis(20), 1, Clock::start());
        let begin = Instant::now();
        near.write_all(b"hello").await.unwrap();
        let mut bytes = [0; 5];
        far.read_exact(&mut bytes).await.unwrap();
        assert_eq!((&bytes, begin.elapsed()), (b"hello", Duration::from_millis(20)));
        drop(near);
        assert_eq!(far.read(&mut bytes).await.unwrap(), 0);
    }

    /// Eight reads of 1 MiB in flight, answered at once: one delay for all of them.
    #[tokio::test(start_paused = true)]
    async fn much_at_once_is_delayed_once() {
        let (mut near, far) = tokio::io::duplex(32 << 20);
        let mut far = Delayed::new(far, Duration::from_millis(20), 64, Clock::start());
        let begin = Instant::now();
        near.write_all(&vec![7; 8 << 20]).await.unwrap();
        let mut bytes = vec![0; 8 << 20];
        far.read_exact(&mut bytes).await.unwrap();
        assert!(bytes.iter().all(|&byte| byte == 7));
        let took = begin.elapsed();
        assert!(took < Duration::from_millis(25), "{took:?}");
    }

    /// Bytes that arrive while the first ones wait have their own due time.
    #[tokio::test(start_paused = true)]
    async fn delays_of_overlapping_replies_do_not_add_up() {
        let (mut near, far) = tokio::io::duplex(1000);
        let mut far = Delayed::new(far, Duration::from_millis(20), 1, Clock::start());
        let begin = Instant::now();
        let writing = async {
            near.write_all(b"one").await.unwrap();
            tokio::time::sleep(Duration::from_millis(15)).await;
            near.write_all(b"two").await.unwrap();
        };
        let mut bytes = [0; 6];
        let (_, read) = tokio::join!(writing, far.read_exact(&mut bytes));
        read.unwrap();
        assert_eq!((&bytes, begin.elapsed()), (b"onetwo", Duration::from_millis(35)));
    }
}
