//! Socket options that no safe interface has: `TCP_INFO` with the length that the kernel knows, and
//! the MTU of a connection's path (tcp(7), ip(7), ipv6(7)).

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;

use super::tcp_info::TcpInfo;

/// Longest value that is read. The kernel's `tcp_info` has 248 bytes in Linux 6.
const BYTES_MAX: usize = 512;

/// What TCP knows of a connection; `None` if the kernel does not answer.
pub(super) fn tcp_info(stream: &TcpStream) -> Option<TcpInfo> {
    TcpInfo::parse(&value(stream, libc::IPPROTO_TCP, libc::TCP_INFO).ok()?)
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

fn number(stream: &TcpStream, level: i32, name: i32) -> Option<u64> {
    let bytes = value(stream, level, name).ok()?;
    let number = i32::from_ne_bytes(*bytes.first_chunk()?);
    u64::try_from(number).ok()
}

#[allow(unsafe_code)]
fn value(stream: &TcpStream, level: i32, name: i32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; BYTES_MAX];
    let mut length = BYTES_MAX as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the buffer, which has that many, and the
    // descriptor belongs to a stream that lives until the call returns.
    let result = unsafe {
        let value = bytes.as_mut_ptr().cast::<libc::c_void>();
        libc::getsockopt(stream.as_raw_fd(), level, name, value, &raw mut length)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(length as usize);
    Ok(bytes)
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
