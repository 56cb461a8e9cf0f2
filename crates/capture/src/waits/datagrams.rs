//! Lookups of names and requests for tickets by UDP.

use smbscope_wire::auth::kerberos::{Kerberos, Kind};

use super::Waits;
use super::names::Message;
use super::pending::{Asking, End, Key, Stage};
use crate::frame::{Direction, UdpDatagram};
use crate::kdc;
use crate::outcome::Output;

const DNS: u16 = 53;
const NETBIOS: u16 = 137;
const LDAP: u16 = 389;
const MDNS: u16 = 5353;
const LLMNR: u16 = 5355;

/// KRB-ERRORs with which a normal logon continues: pre-authentication is required, and the answer is
/// too long for UDP (RFC 4120 section 7.5.9).
const GOES_ON: [i32; 2] = [25, 52];

/// What a KDC's answer says if it says no.
pub fn kerberos_error(bytes: &[u8]) -> Option<String> {
    let message = Kerberos::parse(bytes)?;
    let code = message.error_code.filter(|code| !GOES_ON.contains(code))?;
    let name = match code {
        6 => "KDC_ERR_C_PRINCIPAL_UNKNOWN",
        7 => "KDC_ERR_S_PRINCIPAL_UNKNOWN",
        12 => "KDC_ERR_POLICY",
        14 => "KDC_ERR_ETYPE_NOSUPP",
        18 => "KDC_ERR_CLIENT_REVOKED",
        23 => "KDC_ERR_KEY_EXPIRED",
        24 => "KDC_ERR_PREAUTH_FAILED",
        29 => "KDC_ERR_SVC_UNAVAILABLE",
        37 => "KRB_AP_ERR_SKEW",
        code => return Some(format!("KRB-ERROR {code}")),
    };
    Some(name.to_owned())
}

impl Waits {
    /// Takes a datagram.
    pub fn datagram(
        &mut self,
        datagram: &UdpDatagram<'_>,
        time: i64,
        frame: u64,
        out: &mut Output,
    ) {
        let ports = [datagram.source_port, datagram.destination_port];
        let protocol = match ports {
            _ if ports.contains(&DNS) => "DNS",
            _ if ports.contains(&MDNS) => "mDNS",
            _ if ports.contains(&LLMNR) => "LLMNR",
            _ if ports.contains(&NETBIOS) => "NetBIOS",
            _ if ports.contains(&kdc::PORT) => {
                return self.one_at_a_time("ticket", "Kerberos", datagram, time, frame, out);
            }
            _ if ports.contains(&LDAP) => {
                return self.one_at_a_time("directory", "LDAP", datagram, time, frame, out);
            }
            _ => return,
        };
        let Some(message) = Message::parse(datagram.payload) else { return };
        // Others register, refresh and release names.
        if message.opcode != 0 {
            return;
        }
        let asking = asking(datagram, !message.is_response, time, frame);
        let key = |client| Key::Name(protocol, client, message.name.clone(), message.record);
        if message.is_response {
            // The answer of mDNS goes to everybody.
            let key = match protocol {
                "mDNS" => self.pending.asked_by_anybody(protocol, &message.name, message.record),
                _ => Some(key(datagram.destination)),
            };
            if let Some(key) = key {
                self.pending.end(key, &asking, End::with(message.result()), out);
            }
        } else {
            let asking = Asking { subject: Some(message.name.clone()), ..asking };
            let key = key(datagram.source);
            self.pending.ask(key, Stage::Asked, "name_lookup", protocol, asking, out);
        }
    }

    /// A protocol whose client asks one thing at a time from each of its ports.
    fn one_at_a_time(
        &mut self,
        kind: &'static str,
        protocol: &'static str,
        datagram: &UdpDatagram<'_>,
        time: i64,
        frame: u64,
        out: &mut Output,
    ) {
        let (key, _) = Direction::of_datagram(datagram).flow();
        let key = Key::Datagram(protocol, key);
        let is_request = [kdc::PORT, LDAP].contains(&datagram.destination_port);
        let mut asking = asking(datagram, is_request, time, frame);
        let message = Kerberos::parse(datagram.payload).filter(|_| protocol == "Kerberos");
        if is_request {
            asking.subject = message
                .filter(|message| [Kind::AS_REQ, Kind::TGS_REQ].contains(&message.kind))
                .and_then(|message| message.service);
            self.pending.ask(key, Stage::Asked, kind, protocol, asking, out);
        } else {
            let result = message.and_then(|_| kerberos_error(datagram.payload));
            self.pending.end(key, &asking, End::with(result), out);
        }
    }
}

fn asking(datagram: &UdpDatagram<'_>, is_request: bool, time: i64, frame: u64) -> Asking {
    let (source, destination) = (datagram.source.ip(), datagram.destination.ip());
    let (client, server) = if is_request { (source, destination) } else { (destination, source) };
    Asking {
        client,
        server,
        answered_by: (!is_request).then_some(source),
        port: if is_request { datagram.destination_port } else { datagram.source_port },
        time,
        frame,
        subject: None,
    }
}
