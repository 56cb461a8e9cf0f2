//! Helpers of this folder's tests: building messages, and reading every field of every view at
//! every truncation.

use std::collections::HashMap;

use super::block::Block;
use super::transaction::Part;
use super::*;

/// A message of one command, its status zero.
pub(crate) fn message(command: u8, flags2: u16, words: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.resize(HEADER_BYTES, 0);
    out[4] = command;
    out[10..12].copy_from_slice(&flags2.to_le_bytes());
    out.push((words.len() / 2) as u8);
    out.extend(words);
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
    out
}

/// The same as a reply.
pub(crate) fn reply(command: u8, flags2: u16, words: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut out = message(command, flags2, words, bytes);
    out[9] |= Flags::REPLY.0;
    out
}

/// The first command of a message that was captured whole.
pub(crate) fn block(bytes: &[u8]) -> Block<'_> {
    let message = Message::new(bytes, bytes.len()).unwrap();
    message.blocks().next().unwrap()
}

/// Zeroed words with integers put at byte offsets.
pub(crate) fn words(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut out = vec![0; length];
    for (at, bytes) in fields {
        out[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    out
}

/// UTF-16LE.
pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

macro_rules! every_view {
    ($base:expr, $out:ident: $($view:path),* $(,)?) => {
        $($out.extend(
            <$view>::new($base)
                .fields()
                .into_iter()
                .map(|(field, value)| (concat!(stringify!($view), ".").to_owned() + field, value)),
        );)*
    };
}

/// All fields of all views of a block, whatever its command.
pub(crate) fn fields(block: Block<'_>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    every_view!(block, out:
        create::NtCreateAndXRequest, create::NtCreateAndXResponse,
        file::FileRequest, file::EchoRequest, file::EchoResponse, file::SeekRequest,
        lock::LockByteRangeRequest, lock::LockingAndXRequest,
        negotiate::NegotiateRequest, negotiate::NegotiateResponse,
        open::OpenAndXRequest, open::OpenAndXResponse, open::OpenRequest, open::OpenResponse,
        open::CreateRequest, open::CreateResponse,
        path::PathRequest, path::NtRenameRequest, path::SetInformationRequest,
        path::QueryInformationResponse, path::QueryInformation2Response,
        path::QueryInformationDiskResponse,
        read::ReadRequest, read::ReadResponse, read::ReadAndXRequest, read::ReadAndXResponse,
        read::ReadRawRequest, read::ReadMpxResponse,
        search::SearchRequest, search::SearchResponse,
        session::SessionSetupAndXRequest, session::SessionSetupAndXResponse,
        tree::TreeConnectRequest, tree::TreeConnectResponse,
        tree::TreeConnectAndXRequest, tree::TreeConnectAndXResponse,
        write::WriteRequest, write::WriteResponse, write::WriteAndXRequest,
        write::WriteAndXResponse, write::WriteRawRequest,
    );
    out.push(("fid".into(), format!("{:?}", names::request_fid(block))));
    out.push(("path".into(), format!("{:?}", names::request_path(block))));
    for to_server in [true, false] {
        let Some(part) = Part::parse(block, to_server) else {
            continue;
        };
        let direction = if to_server { "request." } else { "response." };
        let mut part_fields = vec![("name".to_owned(), format!("{:?}", part.name()))];
        every_view!(part, part_fields:
            trans2::FindFirst2Request, trans2::FindFirst2Response, trans2::FindNext2Request,
            trans2::FindNext2Response, trans2::PathInformationRequest,
            trans2::FileInformationRequest, trans2::FsInformationRequest, trans2::Open2Request,
            trans2::Open2Response, trans2::GetDfsReferralRequest,
            nt_transact::CreateRequest, nt_transact::CreateResponse,
            nt_transact::SecurityDescRequest, nt_transact::IoctlSetup,
            nt_transact::NotifyChangeSetup,
        );
        part_fields.push(("path".into(), format!("{:?}", trans2::path(part))));
        out.extend(
            part_fields.into_iter().map(|(field, value)| (direction.to_owned() + &field, value)),
        );
    }
    out
}

/// Reads every field at every truncation of `bytes`: it must be absent or as in the whole.
pub(crate) fn truncate(bytes: &[u8]) {
    let whole: Vec<HashMap<String, String>> = Message::new(bytes, bytes.len())
        .unwrap()
        .blocks()
        .map(|block| fields(block).into_iter().collect())
        .collect();
    for length in MAGIC.len()..bytes.len() {
        let cut = Message::new(&bytes[..length], bytes.len()).unwrap();
        for (block, whole) in cut.blocks().zip(&whole) {
            for (field, value) in fields(block) {
                let expected = whole.get(&field);
                assert!(
                    value == "None" || expected == Some(&value),
                    "{field} is {value} at {length} bytes, {expected:?} in the whole"
                );
            }
        }
        for to_server in [true, false] {
            let needed = need(&bytes[..length], to_server, bytes.len());
            assert!(needed <= bytes.len());
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]

    /// Whatever follows the magic, every field of every truncation is absent or right.
    #[test]
    fn any_bytes_can_be_read(
        command in proptest::prelude::any::<u8>(),
        flags in proptest::prelude::any::<[u8; 3]>(),
        word_count in 0u8..60,
        rest in proptest::collection::vec(0u8..8, 0..120),
    ) {
        let mut bytes = message(command, 0, &[], &[]);
        bytes.truncate(HEADER_BYTES);
        bytes[9..12].copy_from_slice(&flags);
        bytes.push(word_count);
        bytes.extend(rest.iter().map(|&byte| match byte {
            6 => 0xff,
            7 => 70,
            small => small,
        }));
        truncate(&bytes);
    }
}
