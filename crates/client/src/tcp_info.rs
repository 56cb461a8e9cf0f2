//! `struct tcp_info` of Linux (include/uapi/linux/tcp.h). Newer kernels append fields, so each is read
//! by its offset and is absent where the kernel's structure ends before it. The call needs no privilege (tcp(7)).

use std::os::fd::BorrowedFd;

use crate::socket_option::value;

/// What is used of it. Times are microseconds, as in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Payload of a full segment, bytes.
    pub snd_mss: u32,
    /// Segments on the way.
    pub unacked: u32,
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Segments that were retransmitted, so far.
    pub total_retrans: u32,
    /// Since Linux 4.1.
    pub bytes_acked: Option<u64>,
    pub bytes_received: Option<u64>,
    /// Since Linux 4.6.
    pub notsent_bytes: Option<u32>,
    /// Smallest round trip; absent before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Since Linux 4.10.
    pub busy_us: Option<u64>,
    pub rwnd_limited_us: Option<u64>,
    pub sndbuf_limited_us: Option<u64>,
    /// The peer's receive window, since Linux 5.4.
    pub snd_wnd: Option<u32>,
}

impl TcpInfo {
    /// The state of a socket; `None` if the kernel does not answer.
    pub fn read(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
        TcpInfo::parse(&value(socket, libc::IPPROTO_TCP, libc::TCP_INFO).ok()?)
    }

    /// Reads the kernel's structure; `None` if it is shorter than that of Linux 2.6.
    pub fn parse(bytes: &[u8]) -> Option<TcpInfo> {
        let u32_at = |at: usize| {
            let field = bytes.get(at..at.checked_add(4)?)?;
            Some(u32::from_ne_bytes(*field.first_chunk()?))
        };
        let u64_at = |at: usize| {
            let field = bytes.get(at..at.checked_add(8)?)?;
            Some(u64::from_ne_bytes(*field.first_chunk()?))
        };
        Some(TcpInfo {
            snd_mss: u32_at(16)?,
            unacked: u32_at(24)?,
            rtt_us: u32_at(68)?,
            snd_cwnd: u32_at(80)?,
            total_retrans: u32_at(100)?,
            bytes_acked: u64_at(120),
            bytes_received: u64_at(128),
            notsent_bytes: u32_at(144),
            min_rtt_us: u32_at(148).filter(|us| ![0, u32::MAX].contains(us)),
            busy_us: u64_at(168),
            rwnd_limited_us: u64_at(176),
            sndbuf_limited_us: u64_at(184),
            snd_wnd: u32_at(228),
        })
    }

    /// Whether everything that was written has been acknowledged.
    pub fn is_drained(&self) -> bool {
        self.unacked == 0 && self.notsent_bytes.unwrap_or(0) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_the_kernel_does_not_have_are_absent() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(TcpInfo::parse(&bytes[..103]), None);
        let old = TcpInfo::parse(&bytes[..104]).unwrap();
        assert_eq!(old.total_retrans, u32::from_ne_bytes([100, 101, 102, 103]));
        assert_eq!((old.bytes_acked, old.busy_us, old.snd_wnd), (None, None, None));
        let new = TcpInfo::parse(&bytes).unwrap();
        assert_eq!(new.snd_wnd, Some(u32::from_ne_bytes([228, 229, 230, 231])));
        assert!(new.bytes_acked.is_some() && new.min_rtt_us.is_some());
        assert!(!new.is_drained());
    }
}
