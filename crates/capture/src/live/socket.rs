//! A packet socket: heads of packets with their lengths and the kernel's times.
//!
//! packet(7), socket(7), recvmmsg(2). SOCK_DGRAM, so that packets begin with the IP header on every
//! kind of interface. It does not map a ring: that needs `unsafe`.

use std::io::{self, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::sockopt::{
    GetStruct, RcvBuf, RcvBufForce, ReceiveTimeout, ReceiveTimestampns,
};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockProtocol,
    SockType, bind, getsockopt, recvmmsg, setsockopt, socket,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use socket2::SockFilter;

use super::filter::{self, Instruction};
use super::{ANY, Error, Options, Packet};

/// Packets that are received at once.
pub const BATCH: usize = 64;
const NOT_RECEIVED: &str = "cannot receive packets";
/// How long to wait for one.
const WAIT_MS: i64 = 250;
/// The kernel doubles it in an int.
const BUFFER_MAX: usize = 1 << 29;
/// Packets that may have come before the filter stood.
const EARLY_MAX: usize = 1 << 16;

/// A packet socket.
pub struct Socket {
    socket: socket2::Socket,
    head_bytes: usize,
    buffer: Vec<u8>,
    dropped: u64,
    last_time: i64,
}

/// Packets and drops since it was asked last.
#[derive(Clone, Copy, Debug)]
struct PacketStatistics;

nix::getsockopt_impl!(
    PacketStatistics,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats,
    GetStruct<libc::tpacket_stats>
);

impl Socket {
    /// Begins to receive.
    pub fn open(options: &Options) -> Result<Socket, Error> {
        let interface = match options.interface.as_str() {
            ANY => None,
            name => Some(if_nametoindex(name).map_err(|_| no_interface(name))?),
        };
        let protocol = SockProtocol::EthAll;
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, protocol);
        let socket = socket2::Socket::from(socket.map_err(|errno| match errno {
            Errno::EPERM | Errno::EACCES => Error::NoPermission,
            errno => system("cannot open a packet socket")(errno),
        })?);
        let head_bytes = options.head_bytes.max(128);
        let buffer = vec![0; BATCH * head_bytes];
        let mut out = Socket { socket, head_bytes, buffer, dropped: 0, last_time: 0 };
        out.attach(&filter::nothing())?;
        out.drain().map_err(system(NOT_RECEIVED))?;
        let socket = &out.socket;
        setsockopt(socket, ReceiveTimestampns, &true)
            .map_err(system("cannot enable packet timestamps"))?;
        // More than the system's limit is for who may administer the network.
        let bytes = options.buffer_bytes.min(BUFFER_MAX);
        if setsockopt(socket, RcvBufForce, &bytes).is_err() {
            setsockopt(socket, RcvBuf, &bytes).map_err(system("no buffer"))?;
        }
        if let Some(index) = interface {
            // Reports when it goes down; the filter would be enough otherwise. Interfaces without a
            // hardware address (tunnels) are not listed with one and stay unbound.
            if let Some(link) = link_address(index) {
                bind(socket.as_raw_fd(), &link).map_err(system("cannot listen"))?;
            }
            out.drain().map_err(|errno| match errno {
                Errno::ENETDOWN => Error::Down { interface: options.interface.clone() },
                errno => system(NOT_RECEIVED)(errno),
            })?;
        }
        out.attach(&filter::of(interface, &options.ports))?;
        out.dropped();
        out.dropped = 0;
        out.wait(WAIT_MS).map_err(|error| system("cannot set a receive timeout")(error))?;
        Ok(out)
    }

    /// Hands over some of the packets that are there, or waits a moment for one; how many.
    pub fn receive(
        &mut self,
        may_wait: bool,
        take: &mut dyn FnMut(Packet<'_>),
    ) -> io::Result<usize> {
        let mut received = [(0_usize, None::<i64>, 0_usize); BATCH];
        let count = {
            let mut slices: Vec<[IoSliceMut<'_>; 1]> = (self.buffer.chunks_mut(self.head_bytes))
                .map(|chunk| [IoSliceMut::new(chunk)])
                .collect();
            // Set up again each time: the kernel writes lengths into them that would limit the next
            // messages.
            let control = nix::cmsg_space!(TimeSpec);
            let mut headers = MultiHeaders::<LinkAddr>::preallocate(BATCH, Some(control));
            let waits = if may_wait { MsgFlags::MSG_WAITFORONE } else { MsgFlags::MSG_DONTWAIT };
            let flags = MsgFlags::MSG_TRUNC | waits;
            let fd = self.socket.as_raw_fd();
            let messages = match recvmmsg(fd, &mut headers, slices.iter_mut(), flags, None) {
                Ok(messages) => messages,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
                Err(errno) => return Err(errno.into()),
            };
            let mut count = 0;
            for (message, place) in messages.zip(&mut received) {
                let times = message.cmsgs().ok();
                let time = times.into_iter().flatten().find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(time) => Some(time.num_nanoseconds()),
                    _ => None,
                });
                let interface = message.address.map_or(0, |link| link.ifindex());
                *place = (message.bytes, time, interface);
                count += 1;
            }
            count
        };
        let heads = self.buffer.chunks(self.head_bytes);
        for (&(original, time, interface), head) in received.iter().take(count).zip(heads) {
            self.last_time = time.unwrap_or(self.last_time);
            let original = u32::try_from(original).unwrap_or(u32::MAX);
            let bytes = head.get(..original as usize).unwrap_or(head);
            take(Packet { bytes, original, time: self.last_time, interface });
        }
        Ok(count)
    }

    /// Lets no more packets in; what waits can still be received, without waiting for more.
    pub fn stop(&mut self) -> io::Result<()> {
        self.socket.attach_filter(&instructions(&filter::nothing()))?;
        Ok(self.wait(1)?)
    }

    /// Packets that were dropped for want of room.
    pub fn dropped(&mut self) -> u64 {
        // Asking sets the kernel's counter to zero.
        if let Ok(statistics) = getsockopt(&self.socket, PacketStatistics) {
            self.dropped += u64::from(statistics.tp_drops);
        }
        self.dropped
    }

    fn attach(&self, program: &[Instruction]) -> Result<(), Error> {
        let attached = self.socket.attach_filter(&instructions(program));
        attached.map_err(|error| Error::System { what: "cannot attach the packet filter", error })
    }

    fn wait(&self, milliseconds: i64) -> nix::Result<()> {
        setsockopt(&self.socket, ReceiveTimeout, &TimeVal::milliseconds(milliseconds))
    }

    /// Throws away what came before the filter.
    fn drain(&self) -> nix::Result<()> {
        let mut head = [0; 1];
        for _ in 0..EARLY_MAX {
            match nix::sys::socket::recv(self.socket.as_raw_fd(), &mut head, MsgFlags::MSG_DONTWAIT)
            {
                Ok(_) => {}
                Err(Errno::EAGAIN) => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

/// Addresses of this machine.
pub fn addresses() -> Result<Vec<IpAddr>, Error> {
    let all = getifaddrs().map_err(system("cannot list interfaces"))?;
    let addresses = all.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| Some(IpAddr::V6(address.as_sockaddr_in6()?.ip())))
    });
    Ok(addresses.collect())
}

fn link_address(index: u32) -> Option<LinkAddr> {
    let mut links = getifaddrs().ok()?.filter_map(|InterfaceAddress { address, .. }| {
        address.and_then(|address| address.as_link_addr().copied())
    });
    links.find(|link| link.ifindex() == index as usize)
}

fn no_interface(name: &str) -> Error {
    let mut names: Vec<String> =
        getifaddrs().map_or(Vec::new(), |all| all.map(|one| one.interface_name).collect());
    names.sort_unstable();
    names.dedup();
    Error::NoInterface { name: name.to_owned(), existing: names.join(", ") }
}

fn instructions(program: &[Instruction]) -> Vec<SockFilter> {
    let program = program.iter();
    program.map(|one| SockFilter::new(one.code, one.jump_true, one.jump_false, one.k)).collect()
}

fn system(what: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { what, error: errno.into() }
}
