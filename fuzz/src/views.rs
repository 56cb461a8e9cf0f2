//! Every view of `wire` on the same bytes. That fixed fields are read within bounds, one function
//! sees to; here it is what is computed from them.

use std::hint::black_box;

use smbscope_wire::smb1::transaction::{self, Part};
use smbscope_wire::smb1::{self, Message};
use smbscope_wire::smb1::{
    create, lock, names, negotiate, nt_transact, open, path, read, session, trans2, tree, write,
};
use smbscope_wire::smb2;
use smbscope_wire::smb2::create_context::CreateContext;
use smbscope_wire::smb2::header::{Header, members, signature};
use smbscope_wire::status::Status;

/// An SMB2 message or compound.
pub fn smb2(bytes: &[u8]) {
    let mut message = bytes.to_vec();
    // Spares the fuzzer the magic.
    if let Some(magic) = message.first_chunk_mut::<4>() {
        *magic = smb2::MAGIC;
    }
    let mut end = 0;
    for member in members(&message) {
        assert!(member.offset >= end || end == 0, "members do not go back");
        end = member.offset + 1;
        smb2_member(&member.header, member.bytes);
    }
}

fn smb2_member(header: &Header, bytes: &[u8]) {
    use smb2::{
        close, create, directory, error, info, ioctl, lock, negotiate, notify, oplock, read,
        session, tree,
    };
    black_box((header.status(), header.channel_sequence(), header.tree_id(), header.async_id()));
    black_box((header.is_interim(), header.flags.priority(), signature(bytes)));
    black_box((header.command.name(), header.status().map(Status::name)));
    let need = smb2::need(header.command, !header.is_response());
    assert!(need >= smb2::HEADER_BYTES && smb2::need_more(bytes) >= smb2::HEADER_BYTES);
    black_box(close::CloseResponse(bytes).attributes());
    let contexts = |context: CreateContext<'_>| {
        black_box((format!("{:?}", context.request()), format!("{:?}", context.response())));
    };
    let request = create::CreateRequest(bytes);
    black_box(request.name());
    request.contexts().for_each(contexts);
    create::CreateResponse(bytes).contexts().for_each(contexts);
    black_box(directory::QueryDirectoryRequest(bytes).pattern());
    if error::is_error_response(header, bytes) {
        let view = error::ErrorResponse(bytes);
        black_box((view.data(), format!("{:?}", view.symlink()), view.required_buffer_length()));
        black_box(view.contexts().count());
    }
    black_box(info::QueryInfoRequest(bytes).class_name());
    let set = info::SetInfoRequest(bytes);
    black_box((set.class_name(), set.data(), format!("{:?}", set.change())));
    let request = ioctl::IoctlRequest(bytes);
    black_box((request.input(), request.copy_chunks().map(|chunks| chunks.bytes())));
    let response = ioctl::IoctlResponse(bytes);
    black_box((response.output(), response.network_interfaces().count()));
    black_box((response.validate_negotiate_info(), response.copy_chunk_result()));
    let view = lock::LockRequest(bytes);
    black_box((view.locks().count(), view.may_block()));
    let request = negotiate::NegotiateRequest(bytes);
    black_box(request.dialects().count());
    let response = negotiate::NegotiateResponse(bytes);
    black_box(response.security_blob());
    for context in request.contexts().chain(response.contexts()) {
        black_box(format!("{:?}", context.decode()));
    }
    black_box(oplock::OplockBreak::parse(bytes));
    black_box((read::ReadResponse(bytes).data_length(), notify::ChangeNotifyRequest(bytes)));
    let request = session::SessionSetupRequest(bytes);
    black_box((request.security_blob(), request.is_binding()));
    black_box(session::SessionSetupResponse(bytes).security_blob());
    black_box(tree::TreeConnectRequest(bytes).path());
    let flags = tree::TreeConnectResponse(bytes).share_flags();
    black_box(flags.map(|flags| flags.caching_name()));
}

/// An SMB1 message.
pub fn smb1(bytes: &[u8]) {
    let Some((&more, rest)) = bytes.split_first() else { return };
    let mut message = rest.to_vec();
    if let Some(magic) = message.first_chunk_mut::<4>() {
        *magic = smb1::MAGIC;
    }
    let length = message.len() + usize::from(more);
    let Some(view) = Message::new(&message, length) else { return };
    black_box((format!("{:?}", view.header()), view.is_unicode(), view.pid()));
    for to_server in [true, false] {
        assert!(smb1::need(&message, to_server, length) <= length);
    }
    let mut last = 0;
    for block in view.blocks() {
        assert!(block.offset() > last, "a chain goes forward");
        last = block.offset();
        smb1_block(block);
    }
}

fn smb1_block(block: smb1::Block<'_>) {
    let see = |value: Option<smb1::Text<'_>>| {
        black_box(value.map(|text| (text.decode(), text.is_empty())));
    };
    black_box((block.words(), block.bytes(), block.and_x(), block.command().is_and_x()));
    black_box(names::request_fid(block));
    see(names::request_path(block));
    let view = create::NtCreateAndXRequest::new(block);
    see(view.name());
    black_box((view.flags(), view.requested_oplock()));
    let view = create::NtCreateAndXResponse::new(block);
    black_box((view.oplock_level(), view.resource_type()));
    let view = lock::LockingAndXRequest::new(block);
    black_box((view.is_oplock_release(), view.unlocks().count(), view.locks().count()));
    let view = negotiate::NegotiateRequest::new(block);
    view.dialects().for_each(|text| see(Some(text)));
    see(view.dialect(3));
    let view = open::OpenAndXRequest::new(block);
    see(view.name());
    black_box((view.access_mode(), view.requested_oplock()));
    black_box(open::OpenAndXResponse::new(block).has_oplock());
    see(open::OpenRequest::new(block).name());
    black_box(open::OpenResponse::new(block).granted_oplock());
    see(open::CreateRequest::new(block).name());
    see(open::CreateResponse::new(block).temporary_name());
    let view = path::PathRequest::new(block);
    see(view.path());
    see(view.new_path());
    let view = path::NtRenameRequest::new(block);
    see(view.path());
    see(view.new_path());
    see(path::SetInformationRequest::new(block).path());
    let view = read::ReadAndXRequest::new(block);
    black_box((view.offset(), view.max_count()));
    black_box(read::ReadAndXResponse::new(block).data_length());
    black_box(read::ReadRawRequest::new(block).offset());
    see(smb1::search::SearchRequest::new(block).pattern());
    let view = session::SessionSetupAndXRequest::new(block);
    black_box((view.capabilities(), view.security_blob()));
    see(view.account_name());
    see(view.primary_domain());
    see(view.native_os());
    see(view.native_lan_man());
    let view = session::SessionSetupAndXResponse::new(block);
    black_box((view.is_guest(), view.security_blob()));
    see(view.native_os());
    see(view.native_lan_man());
    see(view.primary_domain());
    see(tree::TreeConnectRequest::new(block).path());
    let view = tree::TreeConnectAndXRequest::new(block);
    see(view.path());
    see(view.service());
    let view = tree::TreeConnectAndXResponse::new(block);
    see(view.service());
    see(view.native_file_system());
    let view = write::WriteAndXRequest::new(block);
    black_box((view.offset(), view.write_mode(), view.data_length()));
    black_box(write::WriteAndXResponse::new(block).count());
    let view = write::WriteRawRequest::new(block);
    black_box((view.offset(), view.write_mode()));
    black_box(transaction::is_interim(block));
    for to_server in [true, false] {
        if let Some(part) = Part::parse(block, to_server) {
            smb1_part(part, see);
        }
    }
}

fn smb1_part(part: Part<'_>, see: impl Fn(Option<smb1::Text<'_>>)) {
    see(part.name());
    black_box((part.role(), part.counts().is_whole(), part.setup(), part.max_counts()));
    black_box((part.parameters(), part.data(), part.pipe_fid(), part.pipe_command_name()));
    black_box((part.rap_opcode(), part.subcommand()));
    see(trans2::path(part));
    if let Some(subcommand) = trans2::subcommand(part) {
        black_box((trans2::level(subcommand, part), trans2::fid(subcommand, part)));
        see(trans2::path_of(subcommand, part));
    }
    see(trans2::FindFirst2Request::new(part).pattern());
    see(trans2::FindNext2Request::new(part).last_name());
    see(trans2::Open2Request::new(part).name());
    see(trans2::GetDfsReferralRequest::new(part).file_name());
    if let Some(function) = nt_transact::function(part) {
        black_box(nt_transact::fid(function, part));
    }
    let view = nt_transact::CreateRequest::new(part);
    see(view.name());
    black_box((view.flags(), view.requested_oplock()));
    let view = nt_transact::CreateResponse::new(part);
    black_box((view.oplock_level(), view.resource_type()));
}
