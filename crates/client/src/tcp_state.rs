//! What the system knows of a TCP connection: round trip, window, losses. Linux only.
//!
//! The kernel's structure is in `tcp_info`.

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
    /// Segments that were retransmitted, so far.
    pub retransmissions: u64,
    /// Bytes that were acknowledged, so far.
    pub acknowledged_bytes: u64,
    /// Bytes that arrived, so far.
    pub received_bytes: u64,
    /// The peer's receive window, if it limited this side: it is not larger than the congestion window, and this side
    /// waited for it in a tenth of the time in which there was something to send. (With BBR, which paces, it is a third
    /// for a connection that never gets more than the window.)
    pub limiting_window_bytes: Option<u64>,
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
    pub fn of_stream(stream: &TcpStream) -> Option<Socket> {
        use std::os::fd::AsFd as _;
        Some(Socket { descriptor: stream.as_fd().try_clone_to_owned().ok()? })
    }

    /// The socket of a stream; `None` where it cannot be read.
    #[cfg(not(target_os = "linux"))]
    pub fn of_stream(_: &TcpStream) -> Option<Socket> {
        None
    }

    /// Its state now.
    #[cfg(target_os = "linux")]
    pub fn state(&self) -> Option<TcpState> {
        use std::os::fd::AsFd as _;
        crate::tcp_info::TcpInfo::read(self.descriptor.as_fd()).map(TcpState::from)
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
impl From<crate::tcp_info::TcpInfo> for TcpState {
    fn from(info: crate::tcp_info::TcpInfo) -> TcpState {
        let segment = u64::from(info.snd_mss);
        let is_limited = match (info.rwnd_limited_us, info.busy_us) {
            (Some(limited), Some(busy)) => limited > 0 && limited >= busy / 10,
            _ => false,
        };
        TcpState {
            limiting_window_bytes: (info.snd_wnd.map(u64::from))
                .filter(|window| is_limited && *window <= u64::from(info.snd_cwnd) * segment),
            round_trip_ns: i64::from(info.rtt_us) * 1000,
            round_trip_min_ns: info.min_rtt_us.map(|us| i64::from(us) * 1000),
            window_bytes: u64::from(info.snd_cwnd) * segment,
            in_flight_bytes: u64::from(info.unacked) * segment,
            retransmissions: u64::from(info.total_retrans),
            acknowledged_bytes: info.bytes_acked.unwrap_or_default(),
            received_bytes: info.bytes_received.unwrap_or_default(),
        }
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
        let socket = Socket::of_stream(&near).unwrap();
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
}
