//! How many bytes of a message must be kept to read everything that the views of this folder
//! return, so that the code that reassembles the stream can skip the payload.
//!
//! Payload is: data of writes and of read responses; data of transactions, except responses of
//! Transaction2 (DFS referrals) and the data of SetInformation requests (the new name of a rename).

use super::transaction::{Part, Role};
use super::{Block, Command, HEADER_BYTES, Message};

/// Bytes of a message that let [`need`] decide for good: the longest words it looks at, those of
/// an NtTransact request with four setup words, and ByteCount.
pub const DECIDE_BYTES: usize = HEADER_BYTES + 1 + 46 + 2;

/// Bytes needed of a message of `length` bytes that begins with `prefix`, at most `length`. While
/// `prefix` has neither [`DECIDE_BYTES`] nor the whole message, the answer is to ask again with
/// that many.
pub fn need(prefix: &[u8], to_server: bool, length: usize) -> usize {
    if prefix.len() < DECIDE_BYTES.min(length) {
        return DECIDE_BYTES.min(length);
    }
    let Some(block) = Message::new(prefix, length).and_then(|message| message.blocks().next())
    else {
        return length;
    };
    if block.and_x().is_some() {
        return length;
    }
    payload_start(block, to_server).map_or(length, |start| start.min(length))
}

/// Where the payload begins; `None` without any.
fn payload_start(block: Block<'_>, to_server: bool) -> Option<usize> {
    /// Buffer format and length before the data of core reads and writes.
    const DATA_HEADER: usize = 3;
    let bytes_offset = block.bytes_offset()?;
    match (block.command(), to_server) {
        (Command::WRITE_AND_X | Command::WRITE_RAW | Command::WRITE_MPX, true)
        | (Command::READ_AND_X | Command::READ_MPX, false)
        | (Command::ECHO, _) => Some(bytes_offset),
        (
            Command::WRITE
            | Command::WRITE_AND_UNLOCK
            | Command::WRITE_AND_CLOSE
            | Command::WRITE_PRINT_FILE,
            true,
        )
        | (Command::READ | Command::LOCK_AND_READ | Command::SEARCH | Command::FIND, false) => {
            Some(bytes_offset.saturating_add(DATA_HEADER))
        }
        (Command::TRANSACTION | Command::NT_TRANSACT, _)
        | (
            Command::TRANSACTION_SECONDARY
            | Command::TRANSACTION2_SECONDARY
            | Command::NT_TRANSACT_SECONDARY,
            true,
        ) => transaction(Part::parse(block, to_server)?, bytes_offset),
        _ => None,
    }
}

/// The end of the parameters, and of the name before them.
fn transaction(part: Part<'_>, bytes_offset: usize) -> Option<usize> {
    let counts = part.counts();
    let mut end = bytes_offset;
    if counts.parameter_count > 0 {
        let parameters = u64::from(counts.parameter_offset) + u64::from(counts.parameter_count);
        end = end.max(usize::try_from(parameters).ok()?);
    }
    if part.role() == Role::Primary && part.block().command() == Command::TRANSACTION {
        // The name lies before data and parameters; without data there is nothing to skip.
        if counts.data_count == 0 {
            return None;
        }
        end = end.max(usize::try_from(counts.data_offset).ok()?);
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{message, reply, words};
    use super::*;

    fn whole(bytes: &[u8], to_server: bool) -> usize {
        need(bytes, to_server, bytes.len())
    }

    #[test]
    fn payload_of_reads_and_writes_is_not_needed() {
        let last = |length| words(length, &[(0, &[0xff])]);
        let data = [0; 5000];
        let write = message(0x2f, 0, &last(28), &data);
        assert_eq!(whole(&write, true), 63);
        assert_eq!(need(&write[..40], true, write.len()), DECIDE_BYTES);
        assert_eq!(need(&write[..DECIDE_BYTES], true, 0x2_0000), 63, "the rest need not be there");
        assert_eq!(whole(&reply(0x2e, 0, &last(24), &data), false), 59);
        assert_eq!(whole(&message(0x0b, 0, &[0; 10], &data), true), 48);
        assert_eq!(whole(&reply(0x0a, 0, &[0; 10], &data), false), 48);
        // A chain after the data, and everything else, is needed whole.
        let chained = message(0x2f, 0, &words(28, &[(0, &[0x04, 0, 64])]), &data);
        assert_eq!(whole(&chained, true), chained.len());
        let setup = message(0x73, 0, &last(24), &data);
        assert_eq!(whole(&setup, true), setup.len());
        assert_eq!(need(b"junk", true, 4), 4);
    }

    #[test]
    fn transactions_need_name_and_parameters() {
        // Bytes at 67, a name, parameters at 72 for 4, data at 76.
        let fixed = words(32, &[(18, &[4, 0, 72, 0, 0, 9, 76]), (26, &[2])]);
        let pipe = message(0x25, 0, &fixed, &[0; 3000]);
        assert_eq!(whole(&pipe, true), 76);
        let fixed = words(36, &[(11, &[4]), (15, &[72]), (24, &[9]), (27, &[76])]);
        assert_eq!(whole(&message(0xa1, 0, &fixed, &[0; 3000]), true), 76);
        let wild = words(36, &[(11, &[0xff; 8])]);
        let bytes = message(0xa1, 0, &wild, &[0; 3000]);
        assert_eq!(whole(&bytes, true), bytes.len());
        let find = reply(0x32, 0, &[0; 20], &[0; 3000]);
        assert_eq!(whole(&find, false), find.len());
    }
}
