//! When bytes arrived at this machine, by the kernel's receive time stamps: a busy load generator reads them later.
//!
//! SO_TIMESTAMPING with software stamps (Documentation/networking/timestamping.rst). TCP returns the stamp of the last
//! segment that a read took from. The stamp of a read is its age, which does not depend on the run's clock.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, RecvMsg, TimestampingFlag, recvmsg, setsockopt,
};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::nanoseconds;
use crate::transport::Arrival;

/// Older stamps are those of a wall clock that was set, ns.
const AGE_NS_MAX: i64 = 60_000_000_000;

/// Room for one SCM_TIMESTAMPING message: a header and three times.
#[repr(align(8))]
struct Control([u8; 128]);

/// A TCP stream whose reads say when their bytes arrived.
pub struct Stamped {
    stream: TcpStream,
    arrival: Arc<Arrival>,
}

impl Stamped {
    /// Turns the stamps on; fails where the kernel has none.
    pub fn new(stream: TcpStream) -> Result<Stamped, TcpStream> {
        let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE;
        match setsockopt(&stream, Timestamping, &flags) {
            Ok(()) => Ok(Stamped { stream, arrival: Arc::default() }),
            Err(_) => Err(stream),
        }
    }

    /// The ages of what it reads.
    pub fn arrival(&self) -> Arc<Arrival> {
        self.arrival.clone()
    }

    /// One read: how many bytes, and how old the last of them are.
    fn receive(&self, bytes: &mut [u8]) -> io::Result<(usize, i64)> {
        let mut control = Control([0; 128]);
        let mut parts = [IoSliceMut::new(bytes)];
        let descriptor = self.stream.as_raw_fd();
        let message: RecvMsg<'_, '_, ()> =
            recvmsg(descriptor, &mut parts, Some(&mut control.0), MsgFlags::empty())?;
        let stamped = message.cmsgs().into_iter().flatten().find_map(|one| match one {
            ControlMessageOwned::ScmTimestampsns(stamps) => Some(Duration::from(stamps.system)),
            _ => None,
        });
        Ok((message.bytes, stamped.map_or(0, age_ns)))
    }
}

/// How long ago a wall-clock time was.
fn age_ns(stamp: Duration) -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let age = since.ok().and_then(|now| now.checked_sub(stamp)).map_or(0, nanoseconds);
    if age > AGE_NS_MAX { 0 } else { age }
}

impl AsyncRead for Stamped {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            let room = out.initialize_unfilled();
            let mut taken = None;
            let tried = self.stream.try_io(Interest::READABLE, || {
                let (bytes, age_ns) = self.receive(room)?;
                taken = Some((bytes, age_ns));
                // A short read emptied the socket: this saves the read that would find nothing, as tokio's own do.
                let is_empty = bytes > 0 && bytes < room.len();
                if is_empty { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match (taken, tried) {
                (Some((bytes, age_ns)), _) => {
                    self.arrival.0.store(age_ns, Ordering::Relaxed);
                    out.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                (None, _) => {}
            }
        }
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn bytes_that_waited_for_their_reader_say_how_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) =
            tokio::join!(async { TcpStream::connect(address).await.unwrap() }, listener.accept());
        let mut far = far.unwrap().0;
        let Ok(mut near) = Stamped::new(near) else { panic!("Linux has had them since 4.14") };
        let arrival = near.arrival();
        let mut bytes = [0; 100];
        let mut ages = Vec::new();
        // The kernel begins to stamp packets a moment after the first socket asked for it.
        for _ in 0..100 {
            far.write_all(&[7; 40]).await.unwrap();
            std::thread::sleep(Duration::from_millis(30));
            assert_eq!(near.read(&mut bytes).await.unwrap(), 40);
            ages.push(arrival.age_ns());
            if *ages.last().unwrap() >= 30_000_000 {
                break;
            }
        }
        assert!(ages.last().is_some_and(|age| (30_000_000..AGE_NS_MAX).contains(age)), "{ages:?}");
        // A full buffer leaves the rest for the next read; then the end.
        far.write_all(&[8; 150]).await.unwrap();
        near.read_exact(&mut bytes).await.unwrap();
        near.read_exact(&mut bytes[..50]).await.unwrap();
        drop(far);
        assert_eq!(near.read(&mut bytes).await.unwrap(), 0);
    }

    #[test]
    fn a_stamp_of_the_future_or_of_another_time_has_no_age() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(age_ns(now + Duration::from_secs(5)), 0);
        assert_eq!(age_ns(now - Duration::from_secs(3_600)), 0);
        assert!((5_000_000_000..6_000_000_000).contains(&age_ns(now - Duration::from_secs(5))));
    }
}
