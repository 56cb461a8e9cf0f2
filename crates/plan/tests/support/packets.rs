//! Frames of made-up connections, and what the kernel did with each: its hash and the CPU that received it.
//!
//! A packet socket's classic filter sees both (`SKF_AD_RXHASH`, `SKF_AD_CPU`), and returns how many bytes of the frame
//! the socket keeps. Each socket here keeps [`KEPT`] bytes plus one byte of the answer: four sockets have the hash, a
//! fifth has the CPU. The filter runs after RPS, where the stack receives the frame.
//!
//! packet(7); Linux `Documentation/networking/filter.rst`, `net/core/dev.c` (`__netif_receive_skb_core`).

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// Bytes that each socket keeps of a frame: all headers.
const KEPT: u32 = 80;
/// The length of a frame: the headers and the largest byte fit.
const FRAME_BYTES: usize = 400;
const ETHERTYPE: [u16; 2] = [0x0800, 0x86dd];
const TCP: u8 = 6;
/// Where a filter finds the values of a frame that are not its bytes.
const AD_OFFSET: u32 = -0x1000_i32 as u32;
const AD_RXHASH: u32 = 32;
const AD_CPU: u32 = 36;

/// A connection whose frames arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    pub source: IpAddr,
    pub source_port: u16,
    pub destination: IpAddr,
    pub destination_port: u16,
}

/// What the kernel did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub hash: u32,
    pub cpu: u32,
}

/// Different connections of IPv4 and IPv6, as many of each, to one server.
pub fn arrivals(each: u16) -> Vec<Arrival> {
    (0..each)
        .flat_map(|index| {
            let source_port = 49_152 + index.wrapping_mul(31) % 16_000;
            let [high, low] = index.to_be_bytes();
            let v4 = (IpAddr::from([10, 45, high, low]), IpAddr::from([10, 45, 255, 1]));
            let v6 = |last| IpAddr::V6(Ipv6Addr::new(0xfd45, 0, 0, 0, 0, 0, 1, last));
            [v4, (v6(index), v6(0xffff))].map(|(source, destination)| Arrival {
                source,
                source_port,
                destination,
                destination_port: 445,
            })
        })
        .collect()
}

/// Sends a frame of each connection into an interface, with a pause after each.
pub fn send(
    interface: &str,
    destination_mac: [u8; 6],
    arrivals: &[Arrival],
    pause: Duration,
) -> io::Result<()> {
    let socket = packet_socket(0)?;
    bind(&socket, interface, 0)?;
    for arrival in arrivals {
        let frame = frame(arrival, destination_mac);
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    Ok(())
}

/// The program's end of a tap interface: what it writes, the kernel receives (`Documentation/networking/tuntap.rst`).
pub struct Tap(std::fs::File);

impl Tap {
    pub fn open(interface: &str) -> io::Result<Self> {
        let file = std::fs::File::options().read(true).write(true).open("/dev/net/tun")?;
        // SAFETY: all zeros are a valid request; it lives until the call returns.
        let result = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
                *to = libc::c_char::from_ne_bytes([from]);
            }
            let flags = libc::IFF_TAP | libc::IFF_NO_PI;
            request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or(0);
            libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(file)) }
    }

    /// Sends a frame of each connection.
    pub fn send(&self, destination_mac: [u8; 6], arrivals: &[Arrival]) -> io::Result<()> {
        use std::io::Write as _;
        arrivals
            .iter()
            .try_for_each(|arrival| (&self.0).write_all(&frame(arrival, destination_mac)))
    }
}

/// Sockets on an interface that receives.
pub struct Taps {
    /// Sockets for the hash's bytes, the highest first, then the one for the CPU.
    sockets: Vec<OwnedFd>,
}

impl Taps {
    pub fn new(interface: &str) -> io::Result<Self> {
        let hash = |shift| filter(AD_RXHASH, shift);
        let filters = [hash(24), hash(16), hash(8), hash(0), filter(AD_CPU, 0)];
        let sockets = filters.map(|filter| {
            // Without a protocol nothing arrives before the filter is there.
            let socket = packet_socket(0)?;
            set_option(
                &socket,
                libc::SO_ATTACH_FILTER,
                &libc::sock_fprog {
                    len: u16::try_from(filter.len()).unwrap_or(0),
                    filter: filter.as_ptr().cast_mut(),
                },
            )?;
            set_option(&socket, libc::SO_RCVBUF, &(4 << 20_i32))?;
            bind(&socket, interface, u16::try_from(libc::ETH_P_ALL).unwrap_or(0))?;
            Ok(socket)
        });
        Ok(Self { sockets: sockets.into_iter().collect::<io::Result<_>>()? })
    }

    /// What happened to each of these connections, until all are there or the time is over.
    pub fn collect(&self, arrivals: &[Arrival], patience: Duration) -> BTreeMap<Arrival, Received> {
        let mut bytes: BTreeMap<Arrival, [Option<u8>; 5]> =
            arrivals.iter().map(|arrival| (*arrival, [None; 5])).collect();
        let began = Instant::now();
        while began.elapsed() < patience
            && bytes.values().any(|bytes| bytes.iter().any(Option::is_none))
        {
            for (place, socket) in self.sockets.iter().enumerate() {
                while let Some((arrival, byte)) = receive(socket) {
                    if let Some(bytes) = bytes.get_mut(&arrival) {
                        bytes[place] = Some(byte);
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let complete = bytes.into_iter().filter_map(|(arrival, bytes)| {
            let [Some(a), Some(b), Some(c), Some(d), Some(cpu)] = bytes else { return None };
            let hash = u32::from_be_bytes([a, b, c, d]);
            Some((arrival, Received { hash, cpu: u32::from(cpu) }))
        });
        complete.collect()
    }
}

/// Loads a value, shifts it, and keeps [`KEPT`] bytes more than its low byte.
fn filter(value: u32, shift: u32) -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: 0,
        jf: 0,
        k,
    };
    vec![
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, AD_OFFSET.wrapping_add(value)),
        statement(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, shift),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xff),
        statement(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K, KEPT),
        statement(libc::BPF_RET | 0x10, 0),
    ]
}

/// A frame's connection, and how many bytes above [`KEPT`] the socket kept.
fn receive(socket: &OwnedFd) -> Option<(Arrival, u8)> {
    let mut buffer = [0_u8; FRAME_BYTES];
    // SAFETY: the buffer is valid for its length.
    let length = unsafe {
        libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
    };
    let frame = buffer.get(..usize::try_from(length).ok()?)?;
    let byte = u8::try_from(u32::try_from(length).ok()?.checked_sub(KEPT)?).ok()?;
    let word = |offset: usize| Some(u16::from_be_bytes(*frame.get(offset..)?.first_chunk()?));
    let (source, destination, ports) = match word(12)? {
        0x0800 => {
            let address =
                |offset: usize| Some(IpAddr::from(*frame.get(offset..)?.first_chunk::<4>()?));
            (address(26)?, address(30)?, 34)
        }
        0x86dd => {
            let address =
                |offset: usize| Some(IpAddr::from(*frame.get(offset..)?.first_chunk::<16>()?));
            (address(22)?, address(38)?, 54)
        }
        _ => return None,
    };
    let arrival = Arrival {
        source,
        source_port: word(ports)?,
        destination,
        destination_port: word(ports + 2)?,
    };
    Some((arrival, byte))
}

/// Ethernet, IP, and a TCP segment without flags, whose checksum nothing here reads.
fn frame(arrival: &Arrival, destination_mac: [u8; 6]) -> Vec<u8> {
    let is_v4 = arrival.source.is_ipv4();
    let mut frame = destination_mac.to_vec();
    frame.extend([0x02, 0, 0x5e, 0, 0, 0x77]);
    frame.extend(ETHERTYPE[usize::from(!is_v4)].to_be_bytes());
    let ip_bytes = if is_v4 { FRAME_BYTES - 14 } else { FRAME_BYTES - 54 } as u16;
    match (arrival.source, arrival.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = v4_header(ip_bytes, source, destination);
            frame.extend(header);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(ip_bytes.to_be_bytes());
            frame.extend([TCP, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => {}
    }
    frame.extend(arrival.source_port.to_be_bytes());
    frame.extend(arrival.destination_port.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    frame.resize(FRAME_BYTES, 0);
    frame
}

fn v4_header(length: u16, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend(length.to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
    header.extend(source.octets());
    header.extend(destination.octets());
    let sum = header
        .chunks_exact(2)
        .fold(0_u32, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn packet_socket(protocol: u16) -> io::Result<OwnedFd> {
    // SAFETY: a call without pointers.
    let fd = unsafe {
        libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            i32::from(protocol.to_be()),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(socket: &OwnedFd, interface: &str, protocol: u16) -> io::Result<()> {
    let name = std::ffi::CString::new(interface)?;
    // SAFETY: all zeros are a valid address; the pointers are valid for the calls.
    let result = unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        let length = size_of_val(&address) as libc::socklen_t;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_option<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    // SAFETY: the value is valid for its length.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
