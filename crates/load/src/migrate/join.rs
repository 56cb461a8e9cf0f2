//! Which channels a migration adds to its first connection.

use std::net::{IpAddr, SocketAddr};

use smbscope_client::error::status_text;
use smbscope_client::multichannel::policy::{Reason, Verdict, judge};
use smbscope_client::multichannel::routes::route_to;
use smbscope_client::{Ask, Reply, Want};
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::encode::Ioctl;
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::ioctl::IoctlResponse;
use smbscope_wire::status::Status;

use super::Paths;
use super::request::Control;
use super::run::Mover;
use super::timeline::{Outcome, judged_for};

/// Longest list of interfaces that is accepted.
const INTERFACES_BYTES: u32 = 64 << 10;

impl Mover<'_> {
    /// Begins to add channels, or to ask the server for its interfaces.
    pub(super) fn begin_paths(&mut self) {
        match &self.plan.paths {
            Paths::Count(count) => {
                let addresses = &self.plan.host.addresses;
                for number in 1..usize::from(*count) {
                    if let Some(&to) = addresses.get(number % addresses.len().max(1)) {
                        self.join(to);
                    }
                }
            }
            Paths::Listed(list) => {
                // The first connection went to the first address.
                let all =
                    list.iter().flat_map(|&(to, count)| std::iter::repeat_n(to, count.into()));
                for to in all.skip(1).collect::<Vec<_>>() {
                    self.join(to);
                }
                self.ask_for_interfaces();
            }
            Paths::Offered(_) => self.ask_for_interfaces(),
        }
    }

    fn ask_for_interfaces(&mut self) {
        let ask = Ask { want: Want::Message, payload_bytes: INTERFACES_BYTES, ..Ask::default() };
        let request = Control::new(ask, false, |channel, (session_id, tree_id), ask| {
            let body = Ioctl {
                file_id: FileId::ANY,
                code: Fsctl::QUERY_NETWORK_INTERFACE_INFO,
                input: &[],
                output_bytes: INTERFACES_BYTES,
            };
            channel.add(session_id, tree_id, false, &body, ask)
        });
        self.query = Some(self.channels.submit(request));
    }

    pub(super) fn join(&mut self, to: SocketAddr) {
        let channel = self.channels.join(to);
        self.wanted.insert(channel, to);
    }

    /// The server's interfaces have arrived.
    pub(super) fn offered(&mut self, reply: &Reply) {
        if reply.status != Status::SUCCESS {
            let reason =
                format!("the server does not list its interfaces ({})", status_text(reply.status));
            let effect = match self.plan.paths {
                Paths::Offered(_) => ": the first connection carries everything",
                _ => "",
            };
            self.observer.say(&format!("{reason}{effect}"));
            self.not_listed = Some(reason);
            return;
        }
        let offered: Vec<_> = IoctlResponse(&reply.message).network_interfaces().collect();
        let Some(first) = self.first_address() else { return };
        let rules = match &self.plan.paths {
            Paths::Offered(rules) => *rules,
            _ => Default::default(),
        };
        let mut judged = judge(&offered, first, &rules, route_to);
        if let Paths::Listed(list) = &self.plan.paths {
            // The list decides alone: what the policy would say is not the reason.
            for one in &mut judged {
                let mut wanted = list.iter();
                let wanted = wanted.find(|(to, _)| one.offered.address == Some(to.ip()));
                one.verdict = wanted
                    .map_or(Verdict::Not(Reason::NotListed), |&(_, count)| Verdict::Use(count));
            }
        }
        self.interfaces = judged
            .into_iter()
            .map(|judged| Outcome { judged, channels: 0, failure: None })
            .collect();
        for state in self.channels.states() {
            if let Some(judged) = judged_for(&self.interfaces, &state.server.0) {
                self.timeline.locate(state.connection, &judged);
            }
        }
        if !matches!(self.plan.paths, Paths::Offered(_)) {
            return;
        }
        let port = self.plan.host.target.port;
        let mut joins = Vec::new();
        for one in &self.interfaces {
            if let (Verdict::Use(count), Some(address)) =
                (&one.judged.verdict, one.judged.offered.address)
            {
                let there = u16::from(address == first);
                let missing = usize::from(count.saturating_sub(there));
                joins.extend(std::iter::repeat_n(SocketAddr::new(address, port), missing));
            }
        }
        for to in joins {
            self.join(to);
        }
    }

    fn first_address(&self) -> Option<IpAddr> {
        self.channels.states().first()?.server.0.parse().ok()
    }
}
