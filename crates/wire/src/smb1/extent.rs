//! How much of a transaction one of its messages contains, however little of it was captured.
//!
//! Distinguishes a message that requests more, or is not the last, from a complete one, also in
//! captures cut to headers. MS-CIFS sections 2.2.4.33, .34, .46, .47, .62, .63.

use super::transaction::Part;
use super::{Block, Command};

/// How much of a transaction a message brings, parameters and data together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of the whole transaction, as this message says.
    pub total: u64,
    /// Bytes in this message; those between name, parameters and data count where the words were
    /// not captured whole.
    pub brings: u64,
}

impl Extent {
    /// For a message of the transaction family, even if only the totals were captured: the
    /// message's length then gives what follows the words. `None` for a response without words.
    pub fn from_block(block: Block<'_>, to_server: bool) -> Option<Extent> {
        if let Some(part) = Part::parse(block, to_server) {
            let counts = part.counts();
            return Some(Extent {
                total: sum(counts.total_parameter_count, counts.total_data_count),
                brings: sum(counts.parameter_count, counts.data_count),
            });
        }
        let message = block.message();
        // If there are too few words, they were not cut off.
        if block.words_end()? <= message.bytes().len() {
            return None;
        }
        let total = match block.command() {
            Command::NT_TRANSACT | Command::NT_TRANSACT_SECONDARY => {
                sum(block.word(3)?, block.word(7)?)
            }
            command if command.primary().is_transaction() => {
                sum(block.word::<u16>(0)?.into(), block.word::<u16>(2)?.into())
            }
            _ => return None,
        };
        let brings = message.length().saturating_sub(block.bytes_offset()?) as u64;
        Some(Extent { total, brings })
    }
}

fn sum(parameters: u32, data: u32) -> u64 {
    u64::from(parameters) + u64::from(data)
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::super::testing::{message, reply, words};
    use super::*;

    #[test]
    fn the_extent_of_cut_messages_follows_from_their_length() {
        let extent = |bytes: &[u8], captured: usize, to_server| {
            let cut = Message::new(&bytes[..captured], bytes.len()).unwrap();
            let extent = Extent::from_block(cut.blocks().next().unwrap(), to_server);
            extent.map(|extent| (extent.total, extent.brings))
        };
        let fixed = words(30, &[(0, &[10, 0, 90]), (18, &[10, 0, 65, 0, 20, 0, 75]), (26, &[1])]);
        let bytes = message(0x32, 0, &fixed, &[1; 33]);
        assert_eq!(extent(&bytes, bytes.len(), true), Some((100, 30)));
        assert_eq!(extent(&bytes, 37, true), Some((100, 33)));
        assert_eq!(extent(&bytes, 36, true), None);
        let fixed = words(36, &[(3, &[10]), (7, &[90]), (11, &[10]), (23, &[20])]);
        for (command, to_server) in [(0xa1, true), (0xa0, false)] {
            let bytes = message(command, 0, &fixed, &[1; 33]);
            assert_eq!(extent(&bytes, bytes.len(), to_server), Some((100, 30)));
            assert_eq!(extent(&bytes, 44, to_server), Some((100, 33)));
            assert_eq!(extent(&bytes, 43, to_server), None);
        }
        // Neither words that are too few nor another command.
        let few = message(0x32, 0, &[9; 4], &[1; 33]);
        assert_eq!(extent(&few, few.len(), true), None);
        let close = message(0x04, 0, &[9; 6], &[]);
        assert_eq!(extent(&close, 37, true), None);
        let interim = reply(0x32, 0, &[], &[]);
        assert_eq!(extent(&interim, interim.len(), false), None);
    }
}
