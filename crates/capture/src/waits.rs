//! What clients wait for before SMB and apart from it: names, connections, tickets, directories.
//!
//! A share is slow for its user also when the name of the server is looked up for 11 s. Owns which
//! packets of other protocols begin and end a wait; reads times, names and result codes only. It
//! does not own SMB's messages, nor what a wait means (`analysis`).

mod datagrams;
mod names;
mod pending;

use smbscope_wire::auth::kerberos::Kerberos;

use crate::frame::{FlowKey, TcpFlags, TcpSegment, Unreachable};
use crate::kdc;
use crate::outcome::Output;
use crate::tcp::is_usual;
use pending::{Asking, End, Key, Pending, Stage};

/// Attempts to connect, and requests, of which the end is awaited; the oldest end without one.
const PENDING_MAX: usize = 4_096;

/// A service that clients use before they use SMB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Service {
    kind: &'static str,
    protocol: &'static str,
    /// Whether only the first answer of a connection is of interest.
    first_only: bool,
}

impl Service {
    /// The service of a port of TCP, if its answers are waited for.
    fn from_port(port: u16) -> Option<Service> {
        let (kind, protocol, first_only) = match port {
            53 => ("name_lookup", "DNS", false),
            kdc::PORT | 464 => ("ticket", "Kerberos", false),
            389 | 3268 => ("directory", "LDAP", false),
            636 | 3269 => ("directory", "LDAP", true),
            80 => ("web", "HTTP", true),
            443 => ("web", "HTTPS", true),
            _ => return None,
        };
        Some(Service { kind, protocol, first_only })
    }
}

/// The waits of the connections and datagrams of one shard.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    pending: Pending,
}

impl Waits {
    /// Takes a segment that is not simply one of an SMB connection's data.
    pub fn segment(
        &mut self,
        key: FlowKey,
        segment: &TcpSegment<'_>,
        time: i64,
        frame: u64,
        out: &mut Output,
    ) {
        let flags = segment.flags;
        let is_control = flags.has(TcpFlags::SYN) || flags.has(TcpFlags::RST);
        let (source, destination) = (segment.source_port, segment.destination_port);
        let serves = |port| is_usual(port) || Service::from_port(port).is_some();
        let to_server = match (serves(source), serves(destination)) {
            (false, false) => return,
            (true, true) => source > destination,
            (from_server, _) => !from_server,
        };
        let port = if to_server { destination } else { source };
        let service = Service::from_port(port);
        if !is_control && (service.is_none() || segment.payload_len == 0) {
            return;
        }
        let asking = Asking::from_segment(segment, to_server, time, frame);
        if flags.has(TcpFlags::RST) {
            let end = match (to_server, self.pending.stage(key)) {
                (true, _) => End::of("abandoned"),
                (false, Some(Stage::Connecting)) => End::of("refused"),
                (false, _) => End::of("reset"),
            };
            self.pending.end(Key::Flow(key), &asking, end, out);
        } else if flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK) {
            if to_server {
                self.pending.ask(Key::Flow(key), Stage::Connecting, "connect", "TCP", asking, out);
            }
        } else if flags.has(TcpFlags::SYN) {
            if self.pending.stage(key) == Some(Stage::Connecting) {
                self.pending.end(Key::Flow(key), &asking, End::of("answered"), out);
                if service.is_some_and(|service| service.first_only) {
                    self.pending.expect_first(key, &asking);
                }
            }
        } else if let Some(service) = service {
            self.data(key, service, segment, to_server, asking, out);
        }
    }

    /// A request or an answer of another service.
    fn data(
        &mut self,
        key: FlowKey,
        service: Service,
        segment: &TcpSegment<'_>,
        to_server: bool,
        mut asking: Asking,
        out: &mut Output,
    ) {
        // Behind the length of a message over TCP (RFC 4120 section 7.2.2, RFC 1035 section 4.2.2).
        let message = |bytes: usize| segment.payload.get(bytes..).unwrap_or_default();
        if to_server {
            if service.first_only && self.pending.stage(key) != Some(Stage::First) {
                return;
            }
            asking.subject = match service.protocol {
                "Kerberos" => Kerberos::parse(message(4)).and_then(|message| message.service),
                "DNS" => names::Message::parse(message(2)).map(|message| message.name),
                _ => None,
            };
            let (kind, protocol) = (service.kind, service.protocol);
            self.pending.ask(Key::Flow(key), Stage::Asked, kind, protocol, asking, out);
        } else if self.pending.stage(key) == Some(Stage::Asked) {
            let result = match service.protocol {
                "Kerberos" => datagrams::kerberos_error(message(4)),
                "DNS" => names::Message::parse(message(2)).and_then(|message| message.result()),
                _ => None,
            };
            self.pending.end(Key::Flow(key), &asking, End::with(result), out);
        }
    }

    /// Takes a report that packets of a connection or an exchange cannot be delivered.
    pub fn unreachable(&mut self, report: &Unreachable, time: i64, frame: u64, out: &mut Output) {
        let packet = &report.packet;
        let asking = Asking {
            client: packet.source.ip(),
            server: packet.destination.ip(),
            answered_by: Some(report.source.ip()),
            port: packet.destination_port,
            time,
            frame,
            subject: None,
        };
        if let Some(bytes) = report.largest_bytes {
            if [packet.source_port, packet.destination_port].into_iter().any(is_usual) {
                pending::event("path_mtu", asking, bytes, out);
            }
            return;
        }
        let end = End { outcome: "unreachable", result: Some(report.reason.to_owned()) };
        let key = if packet.is_tcp {
            Key::Flow(report.packet.flow())
        } else {
            match self.pending.name_asked(&asking) {
                Some(key) => key,
                None => return,
            }
        };
        self.pending.end(key, &asking, end, out);
    }

    /// The recording ends: what has no answer by now has none.
    pub fn end(&mut self, out: &mut Output) {
        self.pending.end_all(out);
    }
}

#[cfg(test)]
mod tests;
