//! Frames that are not simply TCP in IP in Ethernet: tags, tunnels, fragments, datagrams.
//!
//! Owns what is counted about them: what was unwrapped, what stayed closed, what was put together.
//! It does not own the headers (`frame`) nor what follows connections (`shard`).

use smbscope_tables::tables::Coverage;

use crate::file::{Chunk, FrameRef, LinkType};
use crate::frame::{
    Fragment, Layer, LayerCounts, Layers, LlcFrame, NotTcp, Reassembled, Reassembler, TcpSegment,
    UdpDatagram, Unreachable, aggregated, dissect_layers,
};

/// Fragments in fragments: a tunnel's packet and the packet in it.
const REASSEMBLED_MAX: usize = 4;
/// UDP ports of the NetBIOS name and datagram services (RFC 1002 sections 4.2 and 4.4).
const NETBIOS_PORTS: [u16; 2] = [137, 138];

/// What a frame contains.
pub enum Found<'a> {
    Segment(TcpSegment<'a>),
    Datagram(UdpDatagram<'a>),
    Unreachable(Unreachable),
    NetBeui(LlcFrame<'a>),
}

/// The state across frames.
#[derive(Clone, Default)]
pub struct CloserLook {
    reassembler: Reassembler,
    layers: LayerCounts,
}

impl CloserLook {
    /// Finds what a frame contains; counts it if that is not read. Returns the packet if `found` got
    /// a part of a packet that this frame, a fragment, completed.
    pub fn look(
        &mut self,
        frame: &FrameRef,
        bytes: &[u8],
        coverage: &mut Coverage,
        mut found: impl FnMut(Found<'_>),
    ) -> Option<Reassembled> {
        let mut layers = Layers::default();
        let result = dissect_layers(frame.link, bytes, frame.original, &mut layers);
        self.layers.add(layers);
        match result {
            Ok(segment) => {
                found(Found::Segment(segment));
                None
            }
            Err(NotTcp::Fragment(fragment)) => {
                let packet = self.reassemble(fragment, bytes, frame.time_ns)?;
                let mut layers = Layers::default();
                let link = packet.link;
                let result = dissect_layers(link, &packet.bytes, packet.original, &mut layers);
                self.layers.add(layers);
                match result {
                    Ok(segment) => found(Found::Segment(segment)),
                    Err(reason) => without_tcp(reason, &packet.bytes, coverage, found),
                }
                Some(packet)
            }
            Err(reason) => {
                without_tcp(reason, bytes, coverage, found);
                None
            }
        }
    }

    /// Replaces each wireless frame that consists of several by those.
    pub fn split_aggregated(&mut self, chunk: &mut Chunk) {
        let frames = std::mem::take(&mut chunk.frames);
        for frame in &frames {
            let inside = if frame.link.is_wireless() {
                aggregated(frame.link, chunk.frame(frame))
            } else {
                Vec::new()
            };
            if inside.is_empty() {
                chunk.frames.push(*frame);
                continue;
            }
            self.layers.add_one(Layer::Wireless);
            chunk.frames.extend(inside.into_iter().map(|range| {
                let captured = (frame.captured as usize).min(range.end);
                FrameRef {
                    offset: frame.offset + range.start as u32,
                    captured: captured.saturating_sub(range.start) as u32,
                    original: range.len() as u32,
                    link: LinkType::ETHERNET,
                    ..*frame
                }
            }));
        }
    }

    /// Adds what was counted to the coverage of a file. With `is_last` no file continues it.
    pub fn end_file(&mut self, is_last: bool, coverage: &mut Coverage) {
        if is_last {
            self.reassembler.end();
        }
        let counts = self.reassembler.counts();
        coverage.frames_fragment += counts.lost;
        coverage.frames_repeated += counts.repeated;
        coverage.fragments_reassembled += counts.reassembled;
        coverage.unwrapped = std::mem::take(&mut self.layers).text();
    }

    /// The packet that a fragment completes.
    fn reassemble(
        &mut self,
        fragment: Fragment,
        bytes: &[u8],
        time_ns: i64,
    ) -> Option<Reassembled> {
        let mut packet = self.reassembler.take(fragment, bytes, time_ns)?;
        for _ in 0..REASSEMBLED_MAX {
            let mut layers = Layers::default();
            match dissect_layers(packet.link, &packet.bytes, packet.original, &mut layers) {
                Err(NotTcp::Fragment(inner)) => {
                    self.layers.add(layers);
                    packet = self.reassembler.take(inner, &packet.bytes, time_ns)?;
                }
                _ => break,
            }
        }
        Some(packet)
    }
}

/// A frame without a TCP segment: perhaps with a datagram.
fn without_tcp(
    reason: NotTcp,
    bytes: &[u8],
    coverage: &mut Coverage,
    mut found: impl FnMut(Found<'_>),
) {
    match reason {
        NotTcp::Udp(udp) => {
            let datagram = udp.datagram(bytes).ok();
            match &datagram {
                Some(datagram) if datagram.is_tunnel() => coverage.frames_tunnelled += 1,
                _ => coverage.frames_not_tcp += 1,
            }
            if let Some(datagram) = datagram {
                let is_netbios = NETBIOS_PORTS.contains(&datagram.destination_port);
                coverage.datagrams_not_sessions += u64::from(is_netbios);
                found(Found::Datagram(datagram));
            }
        }
        NotTcp::Roce(roce) => {
            coverage.frames_not_tcp += 1;
            found(Found::Datagram(roce.datagram(bytes)));
        }
        NotTcp::Icmp(icmp) => {
            coverage.frames_not_tcp += 1;
            icmp.unreachable(bytes)
                .into_iter()
                .for_each(|report| found(Found::Unreachable(report)));
        }
        NotTcp::NetBeui(llc) => {
            coverage.frames_not_tcp += 1;
            found(Found::NetBeui(llc.frame(bytes)));
        }
        NotTcp::Ipx => {
            coverage.frames_not_tcp += 1;
            coverage.frames_ipx += 1;
        }
        NotTcp::NetBios => {
            coverage.frames_not_tcp += 1;
            coverage.datagrams_not_sessions += 1;
        }
        NotTcp::Tunnel => coverage.frames_tunnelled += 1,
        NotTcp::OtherProtocol => coverage.frames_not_tcp += 1,
        NotTcp::UnknownLink => coverage.frames_link_unknown += 1,
        // More fragments in fragments than any network makes.
        NotTcp::Fragment(_) => coverage.frames_fragment += 1,
        NotTcp::Truncated | NotTcp::Malformed | NotTcp::TooDeep => coverage.frames_malformed += 1,
    }
}
