//! One end of a link: whole Ethernet frames in and out of a network interface (packet(7)).
//!
//! Owns: the AF_PACKET socket and its options, batches of frames in and out, the frames that the kernel
//! dropped. It does not own when a frame leaves. Frames have the virtio_net_hdr of PACKET_VNET_HDR
//! (linux/virtio_net.h) in front, unchanged from one port to the other, so that a checksum that the
//! sending machine left to its network card stays a checksum to be filled in instead of becoming a
//! wrong one.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockProtocol,
    SockType, bind, getsockname, getsockopt, recvmmsg, sendmmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::time::{ClockId, clock_gettime};
use nix::{cmsg_space, getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

use super::error::Error;

/// Frames per call.
pub(super) const BATCH: usize = 32;
/// Bytes of the header in front of each frame.
pub(super) const HEADER_BYTES: usize = 10;
/// The largest frame: the most that segmentation offload merges (64 KiB of IP), with tags.
const SLOT_BYTES: usize = HEADER_BYTES + 65_536 + 64;
/// Buffer of the kernel for a port that is not read for a while: 30 ms at 10 Gb/s.
const BUFFER_BYTES: usize = 32 << 20;
const RIGHTS: &str = "the capabilities CAP_NET_RAW and CAP_NET_ADMIN";

sockopt_impl!(
    /// A virtio_net_hdr in front of each frame.
    VnetHeader,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_VNET_HDR,
    bool
);
sockopt_impl!(
    /// Do not show frames that this machine sends (Linux 4.20).
    IgnoreOutgoing,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_IGNORE_OUTGOING,
    bool
);
sockopt_impl!(
    /// Promiscuous mode for the life of the socket.
    Membership,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_ADD_MEMBERSHIP,
    libc::packet_mreq
);
sockopt_impl!(
    /// Frames received and dropped since the last query.
    Statistics,
    GetOnly,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats
);

/// A field of the header in front of a frame (its gso_type, second byte).
pub(super) fn is_merged(frame: &[u8]) -> bool {
    const GSO_NONE: u8 = 0;
    frame.get(1).is_some_and(|kind| *kind != GSO_NONE)
}

/// Buffers for the kernel's input and output of a batch. They cannot move between threads, so the port
/// does not own them.
pub(super) struct Headers {
    receive: MultiHeaders<()>,
    /// Without room for time stamps, which the kernel would take for control messages.
    send: MultiHeaders<()>,
}

impl Headers {
    /// Room for [`BATCH`] frames.
    pub(super) fn new() -> Headers {
        Headers {
            receive: MultiHeaders::preallocate(BATCH, Some(cmsg_space!(TimeSpec))),
            send: MultiHeaders::preallocate(BATCH, None),
        }
    }
}

/// A network interface, open for whole frames.
pub(super) struct Port {
    name: String,
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Port {
    /// Opens the interface of this name in the thread's network namespace. It becomes promiscuous,
    /// because frames for the other side are not addressed to it.
    pub(super) fn open(name: &str, place: &str) -> Result<Port, Error> {
        let failed = |what: &str| {
            let what = format!("{name}: {what}");
            move |error: Errno| Error::io(what, error.into(), RIGHTS)
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Before the address is looked up, so that missing rights are reported first.
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
            .map_err(failed("opening a network interface for whole frames"))?;
        let address = address_of(name, place)?;
        // Protocol 0 keeps the socket's own: every frame.
        bind(socket.as_raw_fd(), &address).map_err(failed("cannot be bound"))?;
        setsockopt(&socket, VnetHeader, &true).map_err(failed("PACKET_VNET_HDR"))?;
        setsockopt(&socket, IgnoreOutgoing, &true)
            .map_err(failed("PACKET_IGNORE_OUTGOING (needs Linux 4.20 or later)"))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(failed("time stamps"))?;
        let membership = libc::packet_mreq {
            mr_ifindex: i32::try_from(address.ifindex()).unwrap_or_default(),
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).unwrap_or_default(),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        setsockopt(&socket, Membership, &membership).map_err(failed("promiscuous mode"))?;
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES)
            .map_err(failed("a receive buffer"))?;
        setsockopt(&socket, sockopt::SndBufForce, &BUFFER_BYTES)
            .map_err(failed("a send buffer"))?;
        let mut port = Port { name: name.to_owned(), socket, buffer: vec![0; SLOT_BYTES * BATCH] };
        // Between socket and bind, frames of all interfaces arrived, and without header.
        let headers = &mut Headers::new();
        while port.receive(headers, |_, _| ()).map_err(|error| Error::io(name, error, RIGHTS))? > 0
        {
        }
        port.dropped();
        Ok(port)
    }

    /// The interface's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The descriptor to wait on.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Hands out the available frames, at most [`BATCH`]: how long ago the kernel received each (ns),
    /// and the frame with its header; returns their number. A frame larger than any offload makes is
    /// cut, which its header's length shows.
    pub(super) fn receive(
        &mut self,
        headers: &mut Headers,
        mut each: impl FnMut(u64, &[u8]),
    ) -> io::Result<usize> {
        let slots = self.buffer.chunks_exact_mut(SLOT_BYTES);
        let mut slots: Vec<[IoSliceMut<'_>; 1]> =
            slots.map(|slot| [IoSliceMut::new(slot)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_raw_fd();
        let messages = match recvmmsg(fd, &mut headers.receive, slots.iter_mut(), flags, None) {
            Ok(messages) => messages,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let now = clock_gettime(ClockId::CLOCK_REALTIME);
        let mut count = 0;
        for message in messages {
            count += 1;
            let stamp = message.cmsgs().ok().and_then(|mut parts| {
                parts.find_map(|part| match part {
                    ControlMessageOwned::ScmTimestampns(at) => Some(at),
                    _ => None,
                })
            });
            let age_ns = stamp.zip(now.ok()).map_or(0, |(at, now)| age_ns(at, now));
            // One slice each.
            message.iovs().for_each(|frame| each(age_ns, frame));
        }
        Ok(count)
    }

    /// Sends frames with their headers, at most [`BATCH`]; returns which of them were not accepted,
    /// with the last reason.
    pub(super) fn send(
        &self,
        headers: &mut Headers,
        frames: &[Box<[u8]>],
    ) -> (Vec<usize>, Option<Errno>) {
        let slices: Vec<[IoSlice<'_>; 1]> =
            frames.iter().take(BATCH).map(|frame| [IoSlice::new(frame)]).collect();
        let (mut done, mut refused, mut why) = (0, Vec::new(), None);
        let fd = self.socket.as_raw_fd();
        while let Some(rest) = slices.get(done..).filter(|rest| !rest.is_empty()) {
            let flags = MsgFlags::MSG_DONTWAIT;
            match sendmmsg(fd, &mut headers.send, rest, [None; BATCH], [], flags) {
                Ok(sent) => done += sent.count().max(1),
                Err(Errno::EINTR) => {}
                // The error belongs to the first frame; the others may succeed.
                Err(error) => {
                    refused.push(done);
                    why = Some(error);
                    done += 1;
                }
            }
        }
        (refused, why)
    }

    /// Frames that the kernel could not hand over since the last call.
    pub(super) fn dropped(&self) -> u64 {
        getsockopt(&self.socket, Statistics).map_or(0, |statistics| statistics.tp_drops.into())
    }

    /// Whether the interface still exists: the kernel detaches it from the socket when it is removed.
    pub(super) fn exists(&self) -> bool {
        let address = getsockname::<LinkAddr>(self.socket.as_raw_fd());
        address.is_ok_and(|address| i32::try_from(address.ifindex()).is_ok_and(|index| index > 0))
    }
}

/// Time from a frame's time stamp until now. The wall clock may be set in between: a negative value, or
/// one longer than any batch waits, is not an age.
fn age_ns(at: TimeSpec, now: TimeSpec) -> u64 {
    const AGE_MAX_NS: u64 = 1_000_000_000;
    let age = now.num_nanoseconds().saturating_sub(at.num_nanoseconds());
    u64::try_from(age).ok().filter(|age| *age < AGE_MAX_NS).unwrap_or(0)
}

/// The address of an interface, to which a socket is bound.
fn address_of(name: &str, place: &str) -> Result<LinkAddr, Error> {
    let interfaces = nix::ifaddrs::getifaddrs()
        .map_err(|error| Error::io("listing network interfaces", error.into(), RIGHTS))?;
    let mut others = Vec::new();
    for interface in interfaces {
        let Some(address) = interface.address.as_ref().and_then(|address| address.as_link_addr())
        else {
            continue;
        };
        if interface.interface_name == name {
            return Ok(*address);
        }
        others.push(interface.interface_name);
    }
    Err(Error::NoInterface {
        name: name.to_owned(),
        place: place.to_owned(),
        others: others.join(", "),
    })
}
