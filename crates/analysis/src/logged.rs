//! What Windows, its SMB server and its client logged on their own: how often each thing happened, to whom, and what to do.
//!
//! These events have no operations, so they have no share of the time; they are listed after the findings. What
//! each one means and which setting it is about is in Microsoft's list of SMB events and in their messages.

use std::collections::HashMap;

use serde::Serialize;
use smbscope_findings::{Actor, Kind as _, KindInfo, kinds};
use smbscope_tables::tables::ServerEvent;

/// Names of each kind that are counted.
const NAMES_MAX: usize = 10_000;
/// Names that are shown.
const NAMES_SHOWN: usize = 3;

/// A kind of event: the word in the table, what it says, the side that can change something, and how.
const fn logged(
    id: &'static str,
    title: &'static str,
    actor: Actor,
    remedy: &'static [(&'static str, &'static str)],
) -> KindInfo {
    KindInfo::new(id, title).with_actor(actor).with_remedies(remedy)
}

kinds! {
    /// What was logged, the most costly kinds first.
    enum LoggedKind {
        SlowFileSystem = logged(
            "slow_file_system",
            "File-system operations took longer than the server tolerates",
            Actor::Server,
            &[("server", "look at the storage of these shares at these times: latency of the volume, filter drivers (fltmc), antivirus, backups, deduplication")],
        ),
        SlowNetwork = logged(
            "slow_network",
            "Sending or receiving took longer than the server tolerates",
            Actor::Network,
            &[("network", "look for losses and closed windows in a capture of these clients, and for network adapters whose receive work is on one CPU")],
        ),
        SlowCommand = logged(
            "slow_command",
            "Commands took longer than the server tolerates",
            Actor::Server,
            &[("server", "record the server's events (smbscope record --print-windows-script --what smb): they say in which part the time goes")],
        ),
        Disconnected = logged(
            "disconnected",
            "Connections to a server were lost",
            Actor::Network,
            &[("network", "compare the times with those of the server, of firewalls and of failovers; a capture shows who sent the reset")],
        ),
        ConnectFailed = logged(
            "connect_failed",
            "Connections to a server could not be made",
            Actor::Network,
            &[("network", "check name resolution, and that port 445 is open from this client")],
        ),
        RequestExpired = logged(
            "request_expired",
            "Requests were given up because no response came",
            Actor::Server,
            &[("server", "look at what the server did at these times: these requests waited until the client's timeout")],
        ),
        SessionFailed = logged(
            "session_failed",
            "Sessions could not be set up again",
            Actor::Server,
            &[("server", "look for the status: an expired ticket, a changed password, or a server that refuses the logon")],
        ),
        ShareFailed = logged(
            "share_failed",
            "Shares could not be connected",
            Actor::Server,
            &[("server", "look for the status: the share is gone, or the user may not use it")],
        ),
        ReopenFailed = logged(
            "reopen_failed",
            "Durable or persistent handles could not be opened again",
            Actor::Server,
            &[("server", "programs lost their open files after a lost connection: look for the reason of the connection's end at the same time")],
        ),
        LogonFailed = logged(
            "logon_failed",
            "Logons failed",
            Actor::Client,
            &[("client", "look for the status and the client: old credentials in services and mapped drives try again and again")],
        ),
        UnencryptedRefused = logged(
            "unencrypted_refused",
            "Access without encryption was refused",
            Actor::Client,
            &[("client", "these clients need SMB 3, or the share's encryption is stricter than intended (Set-SmbShare -EncryptData, RejectUnencryptedAccess)")],
        ),
        CipherRefused = logged(
            "cipher_refused",
            "No common cipher for encryption was found",
            Actor::Client,
            &[("client", "compare the cipher orders (Get-SmbServerConfiguration EncryptionCiphers) with what these clients support")],
        ),
        SignatureWrong = logged(
            "signature_wrong",
            "Messages with a wrong signature were refused",
            Actor::Network,
            &[("network", "a device between client and server changes messages (WAN optimiser, proxy), or somebody tries to")],
        ),
        SigningFailed = logged(
            "signing_failed",
            "Responses with a wrong signature were refused",
            Actor::Network,
            &[("network", "a device between client and server changes messages (WAN optimiser, proxy), or somebody tries to")],
        ),
        NegotiateChanged = logged(
            "negotiate_changed",
            "The negotiation was changed on the way",
            Actor::Network,
            &[("network", "a device between client and server changes messages (WAN optimiser, proxy), or somebody tries to")],
        ),
        NoSigning = logged(
            "no_signing",
            "Clients that do not support signing connected",
            Actor::Client,
            &[("client", "update them before the server requires signing")],
        ),
        NoEncryption = logged(
            "no_encryption",
            "Clients that do not support encryption connected",
            Actor::Client,
            &[("client", "update them before the server or a share requires encryption")],
        ),
        Smb1Access = logged(
            "smb1_access",
            "Clients tried SMB1",
            Actor::Client,
            &[("client", "update or replace them: SMB1 has no protection, and Windows removes it")],
        ),
        GuestLogon = logged(
            "guest_logon",
            "Clients logged on as guest",
            Actor::Client,
            &[("client", "give them an account: a guest's messages cannot be signed")],
        ),
        RdmaWithSigning = logged(
            "rdma_with_signing",
            "Signing is required together with RDMA",
            Actor::Server,
            &[("server", "direct placement by RDMA is not used for signed messages by older versions: signing costs the benefit of RDMA")],
        ),
        RdmaWithEncryption = logged(
            "rdma_with_encryption",
            "Encryption is required together with RDMA",
            Actor::Server,
            &[("server", "direct placement by RDMA is not used for encrypted messages by older versions")],
        ),
        CreditsExhausted = logged(
            "credits_exhausted",
            "Requests waited for credits",
            Actor::Server,
            &[("server", "look at the number of credits that the server grants (Smb2CreditsMax), and at what makes its responses late")],
        ),
        ProcessorLimited = logged(
            "processor_limited",
            "The firmware limited the speed of CPUs",
            Actor::Server,
            &[("server", "everything on this machine is slower while it lasts: look at temperature, power supplies and the power profile in the BIOS (event 37 of Kernel-Processor-Power, one for each CPU)")],
        ),
    }
}

/// Events of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Logged {
    /// The word in the table `server_events`.
    pub kind: &'static str,
    pub title: &'static str,
    pub count: u64,
    pub first_ns: i64,
    pub last_ns: i64,
    /// Null if the events have no duration.
    pub longest_ns: Option<i64>,
    /// From which duration on such an event is written; null if the events do not say it.
    pub threshold_ns: Option<i64>,
    /// The most frequent ones first, at most three.
    pub commands: Vec<String>,
    pub clients: Vec<String>,
    pub users: Vec<String>,
    pub servers: Vec<String>,
    pub shares: Vec<String>,
    pub paths: Vec<String>,
    pub statuses: Vec<String>,
    /// The side that can change something: client, server or network.
    pub side: &'static str,
    pub remedy: &'static str,
}

/// Events so far.
#[derive(Debug, Default)]
pub(crate) struct LoggedTally {
    kinds: HashMap<LoggedKind, Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    row: Logged,
    /// Commands, clients, users, servers, shares, paths, statuses.
    names: [HashMap<String, u64>; 7],
}

impl LoggedTally {
    /// Adds events. Those of an unknown kind are of a later version.
    pub(crate) fn add(&mut self, events: &[ServerEvent]) {
        for event in events {
            let Some(kind) = LoggedKind::from_id(&event.kind) else { continue };
            let tally = self.kinds.entry(kind).or_default();
            let row = &mut tally.row;
            if row.count == 0 {
                (row.first_ns, row.last_ns) = (event.time, event.time);
            }
            row.count += 1;
            row.first_ns = row.first_ns.min(event.time);
            row.last_ns = row.last_ns.max(event.time);
            row.longest_ns = row.longest_ns.max(event.duration_ns);
            row.threshold_ns = row.threshold_ns.or(event.threshold_ns);
            let status = event.status.filter(|status| *status != 0);
            let status = status.map(|code| {
                let code = smbscope_wire::status::Status(code as u32);
                code.name().map_or_else(|| format!("{:#010x}", code.0), str::to_owned)
            });
            let names = [
                event.command.as_ref(),
                event.client.as_ref(),
                event.user.as_ref(),
                event.server.as_ref(),
                event.share.as_ref(),
                event.path.as_ref(),
                status.as_ref(),
            ];
            for (counts, name) in tally.names.iter_mut().zip(names) {
                let Some(name) = name else { continue };
                if counts.len() < NAMES_MAX || counts.contains_key(name) {
                    *counts.entry(name.clone()).or_default() += 1;
                }
            }
        }
    }

    /// The kinds that occurred, the most costly ones first.
    pub(crate) fn finish(mut self) -> Vec<Logged> {
        let logged = LoggedKind::ALL.iter().filter_map(|kind| {
            let Tally { row, names } = self.kinds.remove(kind)?;
            let [commands, clients, users, servers, shares, paths, statuses] = names.map(most);
            let (side, remedy) = kind.info().remedies.first().copied()?;
            Some(Logged {
                kind: kind.id(),
                title: kind.title(),
                commands,
                clients,
                users,
                servers,
                shares,
                paths,
                statuses,
                side,
                remedy,
                ..row
            })
        });
        logged.collect()
    }
}

/// The most frequent names.
fn most(counts: HashMap<String, u64>) -> Vec<String> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.into_iter().take(NAMES_SHOWN).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_kind_and_name() {
        let event = |kind: &str, time, client: &str, duration_ns| ServerEvent {
            kind: kind.to_owned(),
            time,
            client: Some(client.to_owned()),
            duration_ns,
            status: Some(0xc000_006d),
            ..ServerEvent::default()
        };
        let mut tally = LoggedTally::default();
        tally.add(&[
            event("smb1_access", 9, "a", None),
            event("slow_file_system", 5, "b", Some(16)),
            event("slow_file_system", 3, "a", Some(31)),
            event("slow_file_system", 4, "a", Some(17)),
            event("of another version", 4, "a", None),
        ]);
        let logged = tally.finish();
        let names: Vec<_> = logged.iter().map(|row| row.kind).collect();
        assert_eq!(names, ["slow_file_system", "smb1_access"]);
        let slow = &logged[0];
        assert_eq!((slow.count, slow.first_ns, slow.last_ns), (3, 3, 5));
        assert_eq!((slow.longest_ns, &slow.clients[..]), (Some(31), &["a".into(), "b".into()][..]));
        assert_eq!(slow.statuses, ["STATUS_LOGON_FAILURE"]);
    }

    #[test]
    fn every_kind_of_the_table_is_known() {
        let doc = ServerEvent::specs().into_iter().find(|spec| spec.name == "kind").unwrap().doc;
        let listed = doc.split(": ").nth(1).unwrap().trim_end_matches('.').split(", ");
        let mut listed: Vec<_> = listed.collect();
        let mut known: Vec<_> = LoggedKind::ALL.iter().map(|kind| kind.id()).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
