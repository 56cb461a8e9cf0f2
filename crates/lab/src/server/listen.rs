//! TCP ports of a lab: finding a free one, the listeners on a port, and whether an SMB server answers.
//!
//! smbd binds with SO_REUSEPORT, so that two smbds of one user would share a port and the kernel would
//! distribute connections between them: a port is checked before and after the start. Sources:
//! socket(7), proc_net_tcp of the kernel's documentation, MS-SMB2 2.2.3.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::error::LabError;

/// Candidates for an automatic port: always the same ones, because they are easy to type.
const FIRST: u16 = 4450;
const TRIES: u16 = 20;
const LISTEN: u8 = 0x0A;
const ESTABLISHED: u8 = 0x01;

/// Checks that the port is free.
pub(super) fn check(address: IpAddr, port: u16) -> Result<(), LabError> {
    let Err(error) = TcpListener::bind((address, port)) else { return Ok(()) };
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there: name another with --port, or leave --port out for a \
             free one"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "only root may listen there: name one above 1023 with --port".to_owned()
        }
        _ => error.to_string(),
    };
    Err(LabError::Port { address, port, why })
}

/// A port that is free now.
pub(super) fn free(address: IpAddr) -> Result<u16, LabError> {
    if let Some(port) = (FIRST..FIRST + TRIES).find(|port| check(address, *port).is_ok()) {
        return Ok(port);
    }
    any(address)
}

/// A port that the kernel chooses, so that two concurrent callers get different ones.
pub(super) fn any(address: IpAddr) -> Result<u16, LabError> {
    let chosen = TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr());
    chosen.map(|found| found.port()).map_err(|error| LabError::Port {
        address,
        port: 0,
        why: error.to_string(),
    })
}

/// Number of sockets that listen on a port, as the process sees it (in its network namespace).
pub(super) fn listeners(pid: i32, address: IpAddr, port: u16) -> usize {
    count(pid, address, port, LISTEN)
}

/// Number of connections to a server on a port.
pub(super) fn connections(pid: i32, address: IpAddr, port: u16) -> usize {
    count(pid, address, port, ESTABLISHED)
}

fn count(pid: i32, address: IpAddr, port: u16, state: u8) -> usize {
    let name = if address.is_ipv4() { "tcp" } else { "tcp6" };
    let text = fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    text.lines().filter(|line| is_socket(line, address, port, state)).count()
}

/// Lines read `0: 0100007F:1162 00000000:0000 0A ...`: number, local, remote, state.
fn is_socket(line: &str, address: IpAddr, port: u16, state: u8) -> bool {
    let mut fields = line.split_whitespace().skip(1);
    let (Some(local), Some(found)) = (fields.next(), fields.nth(1)) else { return false };
    local == format!("{}:{port:04X}", hexadecimal(address)) && found == format!("{state:02X}")
}

/// An address as the kernel prints it: words of 32 bits, each in the machine's order.
fn hexadecimal(address: IpAddr) -> String {
    let bytes = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect()
}

/// Requests a dialect and waits for any SMB2 answer, even a refusal.
pub(super) fn answers(address: SocketAddr, timeout: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(&negotiate())?;
    let mut head = [0u8; 68];
    stream.read_exact(&mut head)?;
    if head[4..8] == *b"\xfeSMB" { Ok(()) } else { Err(io::Error::other("not an SMB2 answer")) }
}

/// A NEGOTIATE request with the dialects up to 3.0.2, which need no contexts.
fn negotiate() -> Vec<u8> {
    let dialects: [u16; 4] = [0x0202, 0x0210, 0x0300, 0x0302];
    let mut body = Vec::with_capacity(108);
    body.extend(b"\xfeSMB");
    body.extend(64u16.to_le_bytes()); // StructureSize
    body.extend([0u8; 8]); // CreditCharge, Status, Command
    body.extend(1u16.to_le_bytes()); // CreditRequest
    body.extend([0u8; 48]); // Flags to Signature
    body.extend(36u16.to_le_bytes()); // StructureSize
    body.extend(4u16.to_le_bytes()); // DialectCount
    body.extend(1u16.to_le_bytes()); // SecurityMode: signing enabled
    body.extend([0u8; 2 + 4]); // Reserved, Capabilities
    body.extend(*b"smbscope-lab-up!"); // ClientGuid
    body.extend([0u8; 8]); // ClientStartTime
    body.extend(dialects.into_iter().flat_map(u16::to_le_bytes));
    let length = u32::try_from(body.len()).unwrap_or_default().to_be_bytes();
    [length.as_slice(), &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_in_the_kernels_table() {
        let line = "   0: 0100007F:1162 00000000:0000 0A 00000000:00000000 00:00000000 00000000";
        let home = IpAddr::from([127, 0, 0, 1]);
        let big_endian = cfg!(target_endian = "big");
        assert_eq!(is_socket(line, home, 4450, LISTEN), !big_endian);
        assert!(!is_socket(line, home, 4451, LISTEN));
        assert!(!is_socket(line, home, 4450, ESTABLISHED));
        assert!(!is_socket("", home, 4450, LISTEN));
        let local = IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(hexadecimal(local).len(), 32);
    }

    #[test]
    fn the_request_is_decoded_by_our_own_decoder() {
        let bytes = negotiate();
        assert_eq!(bytes.len(), 4 + 64 + 36 + 8);
        assert_eq!(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), 108);
        let header = smbscope_wire::smb2::header::Header::parse(&bytes[4..]);
        assert!(header.is_some(), "{header:?}");
    }
}
