//! What a reply's body adds to its operation (MS-SMB2 section 2.2, the responses).

use smbscope_tables::code::share_type;
use smbscope_tables::interface::{self, ServerInterface};
use smbscope_tables::message::file_bytes;
use smbscope_tables::tables::Referral;
use smbscope_wire::smb2::access::FileAttributes;
use smbscope_wire::smb2::close::CloseResponse;
use smbscope_wire::smb2::create::CreateResponse;
use smbscope_wire::smb2::create_context::{DurableFlags, Lease, ResponseContext};
use smbscope_wire::smb2::directory::QueryDirectoryResponse;
use smbscope_wire::smb2::error::is_error_response;
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::header::Member;
use smbscope_wire::smb2::info::QueryInfoResponse;
use smbscope_wire::smb2::ioctl::IoctlResponse;
use smbscope_wire::smb2::negotiate::{NegotiateResponse, SecurityMode};
use smbscope_wire::smb2::negotiate_context::NegotiateContextData;
use smbscope_wire::smb2::network_interface::InterfaceCapabilities;
use smbscope_wire::smb2::notify::ChangeNotifyResponse;
use smbscope_wire::smb2::read::ReadResponse;
use smbscope_wire::smb2::session::{SessionFlags, SessionSetupResponse};
use smbscope_wire::smb2::tree::{ShareCapabilities, ShareFlags, TreeConnectResponse};
use smbscope_wire::smb2::write::WriteResponse;
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;

use crate::outcome::{Effect, Open, Output, Session, Tree};
use crate::smb::logon;
use crate::smb::pairing::Pairing;
use crate::smb::pending::Pending;

/// Contents of a reply, apart from its header.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The command, for [`Reply::effect`].
    pub command: Command,
    /// Whether the operation was done.
    pub done: bool,
    /// The file that was opened, or that the compound works on.
    pub file_id: Option<[u8; 16]>,
    /// Bytes read, written or answered.
    pub transferred: Option<u64>,
    /// The server did to the file what the request asks for, without saying how much it was.
    pub did_all: bool,
    /// Oplock level granted.
    pub oplock: Option<u8>,
    pub lease: Option<Lease>,
    /// FSCTL that is answered.
    pub fsctl: Option<u32>,
    /// Size of the file, from Close.
    pub size_bytes: Option<u64>,
    /// From Create.
    pub open: Open,
    /// From SessionSetup, unless it is refused: flags of the session, if captured.
    pub session: Option<Option<SessionFlags>>,
    /// From TreeConnect.
    pub tree: Option<Box<Tree>>,
    /// DFS targets.
    pub referrals: Vec<Referral>,
}

/// Reads a final reply, as far as captured, into an empty one.
#[inline(always)]
pub fn decode(member: &Member<'_>, reply: &mut Reply, pairing: &mut Pairing) {
    let bytes = member.bytes;
    let header = &member.header;
    reply.command = header.command;
    if is_error_response(header, bytes) {
        return;
    }
    reply.done = !Status(header.status_or_channel_sequence).is_error();
    match header.command {
        Command::CREATE => create(bytes, reply),
        Command::CLOSE => {
            reply.size_bytes = CloseResponse(bytes).attributes().map(|known| known.end_of_file);
        }
        Command::READ => {
            let view = ReadResponse(bytes);
            let (sent, by_rdma) = (view.data_length(), view.data_remaining());
            reply.transferred = sent.map(|sent| u64::from(sent) + u64::from(by_rdma.unwrap_or(0)));
        }
        Command::WRITE => reply.transferred = WriteResponse(bytes).count().map(u64::from),
        Command::IOCTL => {
            let view = IoctlResponse(bytes);
            let copied = view.bytes_copied().filter(|_| reply.done);
            reply.transferred = copied.or(view.output_count().map(u64::from));
            reply.did_all = reply.done && view.does_whole_range();
            reply.fsctl = view.ctl_code().map(|code| code.0);
            if matches!(
                view.ctl_code(),
                Some(Fsctl::DFS_GET_REFERRALS | Fsctl::DFS_GET_REFERRALS_EX)
            ) {
                reply.referrals = logon::referrals(view.output().unwrap_or_default());
            }
            if view.ctl_code() == Some(Fsctl::QUERY_NETWORK_INTERFACE_INFO) {
                interfaces(view, pairing);
            }
        }
        Command::QUERY_DIRECTORY => {
            reply.transferred = QueryDirectoryResponse(bytes).output_buffer_length().map(u64::from);
        }
        Command::QUERY_INFO => {
            reply.transferred = QueryInfoResponse(bytes).output_buffer_length().map(u64::from);
        }
        Command::CHANGE_NOTIFY => {
            reply.transferred = ChangeNotifyResponse(bytes).output_buffer_length().map(u64::from);
        }
        Command::NEGOTIATE => negotiate(bytes, pairing),
        Command::SESSION_SETUP => reply.session = Some(SessionSetupResponse(bytes).flags()),
        Command::TREE_CONNECT => {
            let view = TreeConnectResponse(bytes);
            let capabilities = view.capabilities();
            reply.tree = Some(Box::new(Tree {
                share: None,
                share_type: view.share_type().map(share_type),
                flags: view.share_flags().map(|flags| u64::from(flags.0)),
                capabilities: capabilities.map(|bits| u64::from(bits.0)),
                continuous_availability: capabilities
                    .map(|bits| bits.contains(ShareCapabilities::CONTINUOUS_AVAILABILITY)),
                encrypt_data: view
                    .share_flags()
                    .map(|flags| flags.contains(ShareFlags::ENCRYPT_DATA)),
                ..Tree::default()
            }));
        }
        _ => {}
    }
}

/// Keeps the interfaces that the server offers, each with an address.
fn interfaces(view: IoctlResponse<'_>, pairing: &mut Pairing) {
    let offered = view.network_interfaces().filter_map(|one| {
        Some(ServerInterface {
            address: one.address?,
            index: one.index,
            speed: one.link_speed,
            has_rss: one.capabilities.contains(InterfaceCapabilities::RSS_CAPABLE),
            has_rdma: one.capabilities.contains(InterfaceCapabilities::RDMA_CAPABLE),
        })
    });
    let text = interface::to_text(offered);
    if !text.is_empty() {
        pairing.table.server_interfaces = Some(text);
    }
}

fn create(bytes: &[u8], reply: &mut Reply) {
    let view = CreateResponse(bytes);
    reply.file_id = view.file_id().map(file_bytes);
    reply.oplock = view.oplock_level().map(|level| level.0);
    let open = &mut reply.open;
    open.directory =
        view.file_attributes().map(|attributes| attributes.contains(FileAttributes::DIRECTORY));
    open.size_bytes = view.end_of_file();
    for context in view.contexts() {
        match context.response() {
            ResponseContext::Lease(lease) => reply.lease = Some(lease),
            ResponseContext::Durable => open.durable = Some(true),
            ResponseContext::DurableV2 { flags, .. } => {
                open.durable = Some(true);
                open.persistent = Some(flags.contains(DurableFlags::PERSISTENT));
            }
            ResponseContext::OnDiskId { disk_file_id, .. } => {
                open.disk_file_id = Some(disk_file_id);
            }
            _ => {}
        }
    }
}

/// Takes what a Negotiate reply says of the connection.
pub fn negotiate(bytes: &[u8], pairing: &mut Pairing) {
    let view = NegotiateResponse(bytes);
    let table = &mut *pairing.table;
    if let Some(dialect) = view.dialect() {
        let code = smbscope_tables::code::dialect(dialect);
        table.dialect = Some(
            smbscope_tables::code::text(smbscope_tables::operation::Column::dialect, code)
                .into_owned(),
        );
        // The wildcard is not a dialect yet: the client negotiates again.
        pairing.dialect = (dialect != Dialect::SMB_2_WILDCARD).then_some(code);
    }
    table.max_transact_bytes = view.max_transact_size().map(u64::from);
    table.max_read_bytes = view.max_read_size().map(u64::from);
    table.max_write_bytes = view.max_write_size().map(u64::from);
    table.server_capabilities = view.capabilities().map(|bits| u64::from(bits.0));
    table.signing_required =
        view.security_mode().map(|mode| mode.contains(SecurityMode::SIGNING_REQUIRED));
    let implied = match view.dialect() {
        Some(Dialect::SMB_2_0_2 | Dialect::SMB_2_1) => Some("HMAC-SHA256"),
        Some(Dialect::SMB_3_0 | Dialect::SMB_3_0_2 | Dialect::SMB_3_1_1) => Some("AES-CMAC"),
        _ => None,
    };
    table.signing_algorithm = implied.map(str::to_owned);
    for context in view.contexts() {
        match context.decode() {
            NegotiateContextData::Encryption(mut ciphers) => {
                table.cipher = ciphers.next().map(|id| named(cipher_name(id), id));
            }
            NegotiateContextData::Signing(mut algorithms) => {
                table.signing_algorithm = algorithms.next().map(|id| named(signing_name(id), id));
            }
            NegotiateContextData::Compression { algorithms, .. } => {
                let names: Vec<_> = algorithms.map(|id| named(compression_name(id), id)).collect();
                table.compression = Some(names.join(", "));
            }
            _ => {}
        }
    }
}

fn named(name: Option<&'static str>, code: u16) -> String {
    name.map_or_else(|| format!("0x{code:04x}"), str::to_owned)
}

// MS-SMB2 sections 2.2.3.1.2, 2.2.3.1.7 and 2.2.3.1.3; the names that administrators configure.
fn cipher_name(id: u16) -> Option<&'static str> {
    ["AES-128-CCM", "AES-128-GCM", "AES-256-CCM", "AES-256-GCM"]
        .get(usize::from(id.checked_sub(1)?))
        .copied()
}

fn signing_name(id: u16) -> Option<&'static str> {
    ["HMAC-SHA256", "AES-CMAC", "AES-GMAC"].get(usize::from(id)).copied()
}

fn compression_name(id: u16) -> Option<&'static str> {
    ["NONE", "LZNT1", "LZ77", "LZ77+Huffman", "Pattern_V1", "LZ4"].get(usize::from(id)).copied()
}

impl Reply {
    /// What the operation does to sessions, trees and opens.
    pub fn effect(&mut self, pending: Option<&mut Pending>, out: &mut Output) -> Effect {
        if self.command == Command::SESSION_SETUP {
            return self.session_effect(pending, out);
        }
        if !self.done && self.command != Command::TREE_CONNECT {
            return Effect::None;
        }
        match self.command {
            Command::CREATE => out.open(self.open),
            Command::CLOSE => Effect::Close(self.size_bytes),
            Command::IOCTL if !self.referrals.is_empty() => {
                let asked = pending.filter(|pending| pending.has_name);
                let asked = asked.map(|pending| pending.name.clone());
                out.referrals(std::mem::take(&mut self.referrals), asked)
            }
            Command::LOGOFF => Effect::Logoff,
            Command::TREE_DISCONNECT => Effect::TreeDisconnect,
            Command::TREE_CONNECT => {
                let mut tree = self.tree.take().map(|tree| *tree).unwrap_or_default();
                tree.refused = !self.done;
                tree.share = pending
                    .filter(|pending| !pending.name.is_empty())
                    .map(|pending| out.push_text(&pending.name));
                out.tree(tree)
            }
            Command::SET_INFO => match pending {
                Some(pending) if !pending.name.is_empty() => {
                    Effect::Rename(out.push_text(&pending.name))
                }
                _ => Effect::None,
            },
            _ => Effect::None,
        }
    }

    /// A session is set up with several messages: each that carries something counts, a refused one
    /// does not.
    fn session_effect(&mut self, pending: Option<&mut Pending>, out: &mut Output) -> Effect {
        let mut session = match pending.and_then(|pending| pending.session.take()) {
            Some(session) => *session,
            None => Session::default(),
        };
        let Some(flags) = self.session else {
            session.refused = true;
            return out.session(session);
        };
        let guest = SessionFlags::IS_GUEST.0 | SessionFlags::IS_NULL.0;
        session.guest = flags.map(|flags| flags.0 & guest != 0);
        session.encrypt_data = flags.map(|flags| flags.contains(SessionFlags::ENCRYPT_DATA));
        out.session(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::Header;

    /// A reply to an FSCTL with that output.
    fn ioctl(code: Fsctl, output: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 112];
        bytes[64] = 49;
        bytes[68..72].copy_from_slice(&code.0.to_le_bytes());
        bytes[96] = 112;
        bytes[100..104].copy_from_slice(&(output.len() as u32).to_le_bytes());
        bytes.extend(output);
        bytes
    }

    #[test]
    fn keeps_the_interfaces_that_a_server_offers() {
        let mut entry = [0; 152];
        (entry[4], entry[8]) = (14, 1);
        entry[16..24].copy_from_slice(&10_000_000_000_u64.to_le_bytes());
        (entry[24], entry[28], entry[31]) = (2, 10, 2);
        let kept = |bytes: &[u8]| {
            let mut pairing = Pairing::default();
            interfaces(IoctlResponse(bytes), &mut pairing);
            pairing.table.server_interfaces
        };
        let reply = ioctl(Fsctl::QUERY_NETWORK_INTERFACE_INFO, &entry);
        assert_eq!(kept(&reply).as_deref(), Some("10.0.0.2 on 14 at 10000000000 bits/s RSS"));
        assert_eq!(kept(&reply[..200]), None, "cut off");
        assert_eq!(kept(&ioctl(Fsctl::PIPE_TRANSCEIVE, &entry)), None);
    }

    #[test]
    fn a_copy_within_the_server_counts_what_was_copied() {
        let output = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48, 0];
        let transferred = |code: Fsctl, status: u32| {
            let mut bytes = ioctl(code, &output);
            bytes[..6].copy_from_slice(b"\xfeSMB\x40\0");
            bytes[8..12].copy_from_slice(&status.to_le_bytes());
            bytes[12] = 11;
            let header = Header::parse(&bytes).unwrap();
            let mut reply = Reply::default();
            decode(
                &Member { offset: 0, header, bytes: &bytes },
                &mut reply,
                &mut Pairing::default(),
            );
            reply.transferred
        };
        assert_eq!(transferred(Fsctl::SRV_COPYCHUNK, 0), Some(48 << 16));
        assert_eq!(transferred(Fsctl::SRV_COPYCHUNK_WRITE, 0), Some(48 << 16));
        // The limits of the server, and another code.
        assert_eq!(transferred(Fsctl::SRV_COPYCHUNK, 0xc000_000d), Some(12));
        assert_eq!(transferred(Fsctl::PIPE_TRANSCEIVE, 0), Some(12));
    }
}
