//! `struct tcp_info` of Linux (include/uapi/linux/tcp.h). Newer kernels append fields, so each is read
//! by its offset and is absent where the kernel's structure ends before it.

/// What is used of it. Times are microseconds, as in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpInfo {
    pub(super) snd_mss: u32,
    /// Segments on the way.
    pub(super) unacked: u32,
    pub(super) rtt_us: u32,
    /// In segments.
    pub(super) snd_cwnd: u32,
    pub(super) total_retrans: u32,
    /// Since Linux 4.1.
    pub(super) bytes_acked: Option<u64>,
    /// Since Linux 4.6; `u32::MAX` before the first sample.
    pub(super) notsent_bytes: Option<u32>,
    pub(super) min_rtt_us: Option<u32>,
    /// Since Linux 4.10.
    pub(super) busy_us: Option<u64>,
    pub(super) rwnd_limited_us: Option<u64>,
    pub(super) sndbuf_limited_us: Option<u64>,
    /// The peer's receive window, since Linux 5.4.
    pub(super) snd_wnd: Option<u32>,
}

impl TcpInfo {
    /// Reads the kernel's structure; `None` if it is shorter than that of Linux 2.6.
    pub(super) fn parse(bytes: &[u8]) -> Option<TcpInfo> {
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
            notsent_bytes: u32_at(144),
            min_rtt_us: u32_at(148).filter(|us| *us != u32::MAX),
            busy_us: u64_at(168),
            rwnd_limited_us: u64_at(176),
            sndbuf_limited_us: u64_at(184),
            snd_wnd: u32_at(228),
        })
    }

    /// Whether everything that was written has been acknowledged.
    pub(super) fn is_drained(&self) -> bool {
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
