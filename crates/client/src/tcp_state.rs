//! What the system knows of a TCP connection: round trip, window, losses. Linux only.
//!
//! Source: `struct tcp_info` of include/uapi/linux/tcp.h, tcp(7). The call needs no privilege. It is the
//! crate's only unsafe code.

use std::time::Duration;

use tokio::net::TcpStream;

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// Smoothed round trip, ns.
    pub round_trip_ns: i64,
    /// Smallest round trip, ns; `None` before the first sample.
    pub round_trip_min_ns: Option<i64>,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Bytes that were sent and not acknowledged.
    pub in_flight_bytes: u64,
    /// Segments that were sent again, so far.
    pub retransmissions: u64,
    /// Bytes that were acknowledged, so far.
    pub acknowledged_bytes: u64,
    /// Bytes that arrived, so far.
    pub received_bytes: u64,
}

/// A socket whose state can be read while its stream belongs to a connection. It keeps the connection open, so it
/// is stored next to the stream.
#[derive(Debug)]
pub struct Socket {
    #[cfg(target_os = "linux")]
    descriptor: std::os::fd::OwnedFd,
}

impl Socket {
    /// The socket of a stream; `None` where it cannot be read.
    #[cfg(target_os = "linux")]
    pub fn of(stream: &TcpStream) -> Option<Socket> {
        use std::os::fd::AsFd as _;
        Some(Socket { descriptor: stream.as_fd().try_clone_to_owned().ok()? })
    }

    /// The socket of a stream; `None` where it cannot be read.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_: &TcpStream) -> Option<Socket> {
        None
    }

    /// Its state now.
    #[cfg(target_os = "linux")]
    pub fn state(&self) -> Option<TcpState> {
        use std::os::fd::AsRawFd as _;
        linux::read(self.descriptor.as_raw_fd())
    }

    /// Its state now.
    #[cfg(not(target_os = "linux"))]
    pub fn state(&self) -> Option<TcpState> {
        None
    }
}

/// Makes the system end the connection when its peer does not answer for this time, while data is sent and while
/// nothing is (tcp(7): TCP_USER_TIMEOUT and keep-alive probes).
#[cfg(target_os = "linux")]
pub fn end_when_silent(stream: &TcpStream, limit: Duration) -> std::io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    let seconds = limit.as_secs().clamp(1, 3600) as u32;
    let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1);
    setsockopt(stream, sockopt::TcpUserTimeout, &milliseconds)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &seconds.div_ceil(2))?;
    setsockopt(stream, sockopt::TcpKeepInterval, &seconds.div_ceil(4))?;
    setsockopt(stream, sockopt::TcpKeepCount, &2)?;
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    Ok(())
}

/// Not available here: the connection ends when the system gives up.
#[cfg(not(target_os = "linux"))]
pub fn end_when_silent(_: &TcpStream, _: Duration) -> std::io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::RawFd;

    use smbscope_wire::read::{u32_at, u64_at};

    use super::TcpState;

    /// Longer than the structure of any kernel so far.
    const INFO_BYTES: usize = 512;

    /// The kernel's structure, as far as this kernel fills it.
    #[allow(unsafe_code)]
    pub(super) fn read(descriptor: RawFd) -> Option<TcpState> {
        let mut info = [0u8; INFO_BYTES];
        let mut length = INFO_BYTES as libc::socklen_t;
        // SAFETY: the pointers are valid for the call, and the kernel writes at most `length` bytes.
        let done = unsafe {
            libc::getsockopt(
                descriptor,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        (done == 0).then(|| decode(info.get(..length as usize).unwrap_or(&info)))?
    }

    /// The fields, whose places never change; later kernels append.
    pub(super) fn decode(info: &[u8]) -> Option<TcpState> {
        let segment = u64::from(u32_at(info, 16)?);
        let least = u32_at(info, 148).filter(|&us| us != 0 && us != u32::MAX);
        Some(TcpState {
            round_trip_ns: i64::from(u32_at(info, 68)?) * 1000,
            round_trip_min_ns: least.map(|us| i64::from(us) * 1000),
            window_bytes: u64::from(u32_at(info, 80)?) * segment,
            in_flight_bytes: u64::from(u32_at(info, 24)?) * segment,
            retransmissions: u64::from(u32_at(info, 100)?),
            acknowledged_bytes: u64_at(info, 120).unwrap_or_default(),
            received_bytes: u64_at(info, 128).unwrap_or_default(),
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_connection_reports_its_state() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mut near, far) =
            tokio::join!(async { TcpStream::connect(address).await.unwrap() }, listener.accept());
        let mut far = far.unwrap().0;
        let socket = Socket::of(&near).unwrap();
        end_when_silent(&near, Duration::from_secs(5)).unwrap();
        near.write_all(&[7; 1000]).await.unwrap();
        let mut bytes = [0; 1000];
        far.read_exact(&mut bytes).await.unwrap();
        far.write_all(&[8; 10]).await.unwrap();
        near.read_exact(&mut bytes[..10]).await.unwrap();
        let state = socket.state().unwrap();
        assert_eq!((state.acknowledged_bytes, state.received_bytes), (1001, 10));
        assert!(state.round_trip_ns > 0 && state.window_bytes > 0, "{state:?}");
        assert_eq!(state.retransmissions, 0);
    }

    #[test]
    fn a_short_structure_is_not_read() {
        assert_eq!(linux::decode(&[0; 103]), None);
        assert!(linux::decode(&[0; 104]).is_some());
    }
}
