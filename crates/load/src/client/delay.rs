//! A connection whose replies come later than they do: distance for convenience.
//!
//! It delays what is read by a fixed time and knows nothing of windows, handshakes and loss; a
//! line made of packets is `wan`.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::clock::Clock;

/// Bytes that may be on their way at once; more wait in the socket.
const ON_THE_WAY_BYTES: usize = 4 << 20;
const READ_BYTES: usize = 64 << 10;

/// See the module.
pub struct Delayed<T> {
    inner: T,
    delay: Duration,
    queue: VecDeque<(Instant, Vec<u8>)>,
    queued_bytes: usize,
    ended: bool,
    clock: Clock,
    /// Until the first of the queue has come.
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl<T: AsyncRead + Unpin> Delayed<T> {
    /// What comes from `inner`, `delay` later.
    pub fn new(inner: T, delay: Duration, clock: Clock) -> Delayed<T> {
        let queue = VecDeque::new();
        Delayed { inner, delay, queue, queued_bytes: 0, ended: false, clock, wait: None }
    }

    /// Takes what has come into the queue.
    fn fill(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.ended && self.queued_bytes < ON_THE_WAY_BYTES {
            let mut bytes = vec![0; READ_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.inner).poll_read(context, &mut buffer) {
                Poll::Pending => break,
                Poll::Ready(done) => done?,
            }
            let length = buffer.filled().len();
            self.ended = length == 0;
            bytes.truncate(length);
            self.queued_bytes += length;
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
    async fn what_comes_comes_later() {
        let (mut near, far) = tokio::io::duplex(1000);
        let mut far = Delayed::new(far, Duration::from_millis(20), Clock::start());
        let begin = Instant::now();
        near.write_all(b"hello").await.unwrap();
        let mut bytes = [0; 5];
        far.read_exact(&mut bytes).await.unwrap();
        assert_eq!((&bytes, begin.elapsed()), (b"hello", Duration::from_millis(20)));
        drop(near);
        assert_eq!(far.read(&mut bytes).await.unwrap(), 0);
    }
}
