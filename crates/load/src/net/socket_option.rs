//! Options of a connection's socket: its state, the size of its segments and the MTU of its path (tcp(7), ip(7),
//! ipv6(7)).

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;

use smbscope_client::socket_option::{set, value};
use smbscope_client::tcp_info::TcpInfo;

/// What TCP knows of a connection; `None` if the kernel does not answer.
pub(super) fn tcp_info(stream: &TcpStream) -> Option<TcpInfo> {
    TcpInfo::read(stream.as_fd())
}

/// Payload of a full segment.
pub(super) fn segment_bytes(stream: &TcpStream) -> Option<u64> {
    number(stream, libc::IPPROTO_TCP, libc::TCP_MAXSEG)
}

/// MTU of the path, as the kernel knows it now.
pub(super) fn path_mtu(stream: &TcpStream) -> Option<u64> {
    match stream.peer_addr().ok()? {
        SocketAddr::V6(address) if address.ip().to_ipv4_mapped().is_none() => {
            number(stream, libc::IPPROTO_IPV6, libc::IPV6_MTU)
        }
        _ => number(stream, libc::IPPROTO_IP, libc::IP_MTU),
    }
}

/// Wakes a reader only when this many bytes are there, or the stream ends. Without it, each wakeup of a reader that drains
/// the buffer at once costs the sender's CPU time.
pub(super) fn set_low_water(stream: &TcpStream, bytes: usize) {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    // If the kernel refuses, the reader wakes up more often.
    let _ = set(stream.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
}

fn number(stream: &TcpStream, level: i32, name: i32) -> Option<u64> {
    let bytes = value(stream.as_fd(), level, name).ok()?;
    let number = i32::from_ne_bytes(*bytes.first_chunk()?);
    u64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_loopback_connection_has_all_of_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mtu, segment) = (path_mtu(&stream).unwrap(), segment_bytes(&stream).unwrap());
        assert!(mtu >= 1500 && segment + 40 <= mtu, "{mtu} {segment}");
        let info = tcp_info(&stream).unwrap();
        assert!(info.snd_cwnd > 0 && info.snd_mss > 0, "{info:?}");
    }
}
