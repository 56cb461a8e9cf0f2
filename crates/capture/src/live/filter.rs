//! The kernel's filter: TCP packets of some ports, on one interface or all, each seen once.
//!
//! Classic BPF on a packet socket of the kind SOCK_DGRAM, whose packets begin with the IP header.
//! `Documentation/networking/filter.rst` of the kernel, "BPF engine and instruction set".

/// One instruction (`struct sock_filter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when the comparison holds.
    pub jump_true: u8,
    /// Instructions to skip if not.
    pub jump_false: u8,
    /// Operand.
    pub k: u32,
}

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// A half word at X + k.
const LOAD_HALF_INDEXED: u16 = 0x48;
/// X = 4 * (byte & 15): the length of an IPv4 header.
const LOAD_HEADER_LENGTH: u16 = 0xb1;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

// What the kernel knows in addition to the bytes (SKF_AD_OFF and linux/filter.h).
const METADATA: u32 = 0xffff_f000;
const PROTOCOL: u32 = METADATA;
const PACKET_TYPE: u32 = METADATA + 4;
const INTERFACE: u32 = METADATA + 8;
const HARDWARE_TYPE: u32 = METADATA + 28;

const PACKET_OUTGOING: u32 = 4;
const ARPHRD_LOOPBACK: u32 = 772;
const ETH_P_IP: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
/// Hop-by-hop, routing, fragment and destination options: TCP may stand behind them.
const EXTENSIONS: [u32; 4] = [0, 43, 44, 60];

#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Next,
    Accept,
    Drop,
    Place(usize),
}

struct Program(Vec<(u16, u32, To, To)>);

impl Program {
    fn load(&mut self, code: u16, k: u32) {
        self.0.push((code, k, To::Next, To::Next));
    }

    fn jump(&mut self, code: u16, k: u32, if_true: To, if_false: To) -> usize {
        self.0.push((code, k, if_true, if_false));
        self.0.len() - 1
    }

    fn set_false(&mut self, place: usize, to: usize) {
        if let Some((.., if_false)) = self.0.get_mut(place) {
            *if_false = To::Place(to);
        }
    }

    fn set_true(&mut self, place: usize, to: usize) {
        if let Some((_, _, if_true, _)) = self.0.get_mut(place) {
            *if_true = To::Place(to);
        }
    }

    /// Source and destination port are at `source` and two bytes behind.
    fn ports(&mut self, load: u16, source: u32, ports: &[u16]) {
        for at in [source, source + 2] {
            self.load(load, at);
            for &port in ports {
                self.jump(JUMP_EQUAL, u32::from(port), To::Accept, To::Next);
            }
        }
        self.load(RETURN, 0);
    }

    fn assemble(self) -> Vec<Instruction> {
        let (drop, accept) = (self.0.len(), self.0.len() + 1);
        let mut out: Vec<Instruction> = (self.0.iter().enumerate())
            .map(|(at, &(code, k, if_true, if_false))| {
                let distance = |to| {
                    let place = match to {
                        To::Next => at + 1,
                        To::Accept => accept,
                        To::Drop => drop,
                        To::Place(place) => place,
                    };
                    (place - at - 1) as u8
                };
                Instruction {
                    code,
                    jump_true: distance(if_true),
                    jump_false: distance(if_false),
                    k,
                }
            })
            .collect();
        // Whole: with less, the original length would be lost.
        for k in [0, u32::MAX] {
            out.push(Instruction { code: RETURN, jump_true: 0, jump_false: 0, k });
        }
        out
    }
}

/// A filter that rejects every packet.
pub fn nothing() -> Vec<Instruction> {
    vec![Instruction { code: RETURN, jump_true: 0, jump_false: 0, k: 0 }]
}

/// Lets pass what `ports` (at most [`super::PORTS_MAX`]) have to do with, on the interface of this
/// number or, without one, on all. Pieces of fragmented packets pass, so that they are counted, and
/// what stands behind IPv6's extension headers, which the receiver has to look at.
pub fn of(interface: Option<u32>, ports: &[u16]) -> Vec<Instruction> {
    let mut out = Program(Vec::new());
    if let Some(interface) = interface {
        out.load(LOAD_WORD, INTERFACE);
        out.jump(JUMP_EQUAL, interface, To::Next, To::Drop);
    }
    // A loopback interface shows each packet when it leaves and when it comes back.
    out.load(LOAD_WORD, HARDWARE_TYPE);
    let other_hardware = out.jump(JUMP_EQUAL, ARPHRD_LOOPBACK, To::Next, To::Next);
    out.load(LOAD_WORD, PACKET_TYPE);
    out.jump(JUMP_EQUAL, PACKET_OUTGOING, To::Drop, To::Next);
    out.set_false(other_hardware, out.0.len());
    out.load(LOAD_WORD, PROTOCOL);
    let not_ipv4 = out.jump(JUMP_EQUAL, ETH_P_IP, To::Next, To::Next);
    out.load(LOAD_BYTE, 9);
    out.jump(JUMP_EQUAL, TCP, To::Next, To::Drop);
    out.load(LOAD_HALF, 6);
    out.jump(JUMP_ANY_BIT, 0x1fff, To::Accept, To::Next);
    out.load(LOAD_HEADER_LENGTH, 0);
    out.ports(LOAD_HALF_INDEXED, 0, ports);
    out.set_false(not_ipv4, out.0.len());
    out.jump(JUMP_EQUAL, ETH_P_IPV6, To::Next, To::Drop);
    out.load(LOAD_BYTE, 6);
    let is_tcp = out.jump(JUMP_EQUAL, TCP, To::Next, To::Next);
    for extension in EXTENSIONS {
        out.jump(JUMP_EQUAL, extension, To::Accept, To::Next);
    }
    out.load(RETURN, 0);
    out.set_true(is_tcp, out.0.len());
    out.ports(LOAD_HALF, 40, ports);
    out.assemble()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Metadata {
        protocol: u32,
        packet_type: u32,
        interface: u32,
        hardware: u32,
    }

    /// Runs a program as the kernel does; a load behind the packet's end drops it.
    fn passes(program: &[Instruction], packet: &[u8], metadata: &Metadata) -> bool {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
        loop {
            let Instruction { code, jump_true, jump_false, k } = program[at];
            at += 1;
            let half = |at: u32| {
                packet
                    .get(at as usize..at as usize + 2)
                    .map(|b| u32::from(b[0]) << 8 | u32::from(b[1]))
            };
            let loaded = match code {
                RETURN => return k > 0,
                JUMP_EQUAL | JUMP_ANY_BIT => {
                    let holds = if code == JUMP_EQUAL { a == k } else { a & k != 0 };
                    at += usize::from(if holds { jump_true } else { jump_false });
                    continue;
                }
                LOAD_HEADER_LENGTH => {
                    x = 4 * u32::from(packet[k as usize] & 15);
                    continue;
                }
                LOAD_WORD => match k {
                    PROTOCOL => Some(metadata.protocol),
                    PACKET_TYPE => Some(metadata.packet_type),
                    INTERFACE => Some(metadata.interface),
                    HARDWARE_TYPE => Some(metadata.hardware),
                    _ => panic!("no word at {k:x}"),
                },
                LOAD_HALF => half(k),
                LOAD_HALF_INDEXED => half(x + k),
                LOAD_BYTE => packet.get(k as usize).map(|&byte| u32::from(byte)),
                code => panic!("no operation {code:x}"),
            };
            match loaded {
                Some(value) => a = value,
                None => return false,
            }
        }
    }

    fn ipv4(protocol: u8, options: usize, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut out = vec![0; 20 + options];
        out[0] = 0x45 + (options / 4) as u8;
        out[6..8].copy_from_slice(&fragment.to_be_bytes());
        out[9] = protocol;
        out.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        out.resize(out.len() + 16, 0);
        out
    }

    fn ipv6(next: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut out = vec![0; 40];
        out[0] = 0x60;
        out[6] = next;
        out.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        out.resize(out.len() + 16, 0);
        out
    }

    #[test]
    fn the_filter_passes_the_right_packets() {
        let ethernet = |protocol| Metadata { protocol, packet_type: 4, interface: 3, hardware: 1 };
        let v4 = ethernet(ETH_P_IP);
        let v6 = ethernet(ETH_P_IPV6);
        let many: Vec<u16> = (1000..1000 + super::super::PORTS_MAX as u16).collect();
        for interface in [None, Some(3)] {
            let program = of(interface, &[445, 139]);
            assert!(passes(&program, &ipv4(6, 0, 0, [445, 50_000]), &v4));
            assert!(passes(&program, &ipv4(6, 40, 0x4000, [50_000, 139]), &v4));
            assert!(!passes(&program, &ipv4(6, 0, 0, [80, 50_000]), &v4));
            assert!(!passes(&program, &ipv4(17, 0, 0, [445, 445]), &v4));
            assert!(passes(&program, &ipv4(6, 0, 0x0020, [1, 2]), &v4), "a later fragment");
            assert!(passes(&program, &ipv6(6, [50_000, 445]), &v6));
            assert!(!passes(&program, &ipv6(6, [50_000, 446]), &v6));
            assert!(passes(&program, &ipv6(60, [1, 2]), &v6), "an extension header");
            assert!(!passes(&program, &ipv6(17, [445, 445]), &v6));
            assert!(!passes(&program, &ipv4(6, 0, 0, [445, 445]), &ethernet(0x0806)));
            let lo = |packet_type| Metadata { packet_type, hardware: 772, ..ethernet(ETH_P_IP) };
            assert!(passes(&program, &ipv4(6, 0, 0, [445, 1]), &lo(0)));
            assert!(!passes(&program, &ipv4(6, 0, 0, [445, 1]), &lo(4)), "seen again as incoming");
            let program = of(interface, &many);
            assert!(passes(&program, &ipv6(6, [1, 1000]), &v6));
            assert!(passes(&program, &ipv4(6, 0, 0, [1000 + 31, 1]), &v4));
            assert!(!passes(&program, &ipv4(6, 0, 0, [1, 1000 + 32]), &v4));
        }
        let elsewhere = of(Some(2), &[445]);
        assert!(!passes(&elsewhere, &ipv4(6, 0, 0, [445, 1]), &v4));
        assert!(!passes(&nothing(), &ipv4(6, 0, 0, [445, 1]), &v4));
    }
}
