//! The envelope of Transaction, Transaction2 and NtTransact: counts, setup, parameters; and the
//! subcommands of Transaction (named pipes and mailslots).
//!
//! Owns what one message of a transaction carries. Putting the messages of a transaction
//! together is the reader's: a request is whole when the parameter and data counts of its primary
//! and secondary messages add up to the totals, a response likewise over its messages. Totals may
//! shrink on the way, so the smallest counts. A server that expects secondaries first answers
//! with an interim response, which has no words.
//!
//! MS-CIFS sections 2.2.4.33, .34, .46, .47, .62, .63 and 2.2.5.

use super::block::Field;
use super::strings::{Strings, Text};
use super::{Block, Command};

/// What a message of a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The request, with all or the first of its parameters and data.
    Primary,
    /// Another message of the request.
    Secondary,
    /// A response, one of several when its counts are below the totals.
    Response,
}

/// Counts, offsets (from the header) and displacements of a message's parameters and data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub total_parameter_count: u32,
    pub total_data_count: u32,
    pub parameter_count: u32,
    pub parameter_offset: u32,
    pub parameter_displacement: u32,
    pub data_count: u32,
    pub data_offset: u32,
    pub data_displacement: u32,
}

impl Counts {
    /// Whether this message brings everything.
    pub fn is_whole(&self) -> bool {
        self.parameter_count >= self.total_parameter_count
            && self.data_count >= self.total_data_count
    }
}

/// One message of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    block: Block<'a>,
    role: Role,
    counts: Counts,
    setup: &'a [u8],
}

impl<'a> Part<'a> {
    /// Reads a command of the transaction family. `None` for any other command, for a response
    /// without words (interim or error) and when not all of the fixed words were captured.
    pub fn parse(block: Block<'a>, to_server: bool) -> Option<Part<'a>> {
        let (role, counts, setup) = match (block.command(), to_server) {
            (Command::TRANSACTION | Command::TRANSACTION2, true) => {
                (Role::Primary, short(block, REQUEST)?, Some((26, 28)))
            }
            (Command::TRANSACTION_SECONDARY | Command::TRANSACTION2_SECONDARY, true) => {
                (Role::Secondary, short(block, SECONDARY)?, None)
            }
            (Command::TRANSACTION | Command::TRANSACTION2, false) => {
                (Role::Response, short(block, RESPONSE)?, Some((18, 20)))
            }
            (Command::NT_TRANSACT, true) => (Role::Primary, nt_request(block)?, Some((35, 38))),
            (Command::NT_TRANSACT_SECONDARY, true) => (Role::Secondary, nt_displaced(block)?, None),
            (Command::NT_TRANSACT, false) => (Role::Response, nt_displaced(block)?, Some((35, 36))),
            _ => return None,
        };
        let setup = match setup {
            Some((count, at)) => {
                let length = usize::from(block.word::<u8>(count)?) * 2;
                let rest = block.words().get(at..).unwrap_or_default();
                rest.get(..length).unwrap_or(rest)
            }
            None => &[],
        };
        Some(Part { block, role, counts, setup })
    }

    /// The command that carries it.
    pub fn block(&self) -> Block<'a> {
        self.block
    }

    /// What it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The setup words, as far as captured; a secondary has none.
    pub fn setup(&self) -> &'a [u8] {
        self.setup
    }

    /// The integer `at` bytes into the setup words.
    pub(crate) fn setup_word<T: Field>(&self, at: usize) -> Option<T> {
        T::read(self.setup, at)
    }

    /// The name of a Transaction: `\PIPE\...` or `\MAILSLOT\...`.
    pub fn name(&self) -> Option<Text<'a>> {
        match (self.block.command(), self.role) {
            (Command::TRANSACTION, Role::Primary) => self.block.strings(0)?.text(),
            _ => None,
        }
    }

    /// What a Transaction or Transaction2 request asks for: its first setup word.
    pub fn subcommand(&self) -> Option<u16> {
        match (self.block.command(), self.role) {
            (Command::TRANSACTION | Command::TRANSACTION2, Role::Primary) => self.setup_word(0),
            _ => None,
        }
    }

    /// What an NtTransact request asks for.
    pub fn nt_function(&self) -> Option<u16> {
        match (self.block.command(), self.role) {
            (Command::NT_TRANSACT, Role::Primary) => self.block.word(36),
            _ => None,
        }
    }

    /// The pipe of a Transaction request on an open pipe: the second setup word.
    pub fn pipe_fid(&self) -> Option<u16> {
        match (self.block.command(), self.role) {
            (Command::TRANSACTION, Role::Primary)
                if PipeCommand(self.subcommand()?).has_fid() && !self.is_mailslot() =>
            {
                self.setup_word(2)
            }
            _ => None,
        }
    }

    /// What a Transaction request does: an operation on a pipe, or a mailslot write.
    pub fn pipe_command_name(&self) -> Option<&'static str> {
        match (self.block.command(), self.role) {
            (Command::TRANSACTION, Role::Primary) if self.is_mailslot() => Some("MailslotWrite"),
            (Command::TRANSACTION, Role::Primary) => PipeCommand(self.subcommand()?).name(),
            _ => None,
        }
    }

    /// The function that a Transaction request without setup words calls on `\PIPE\LANMAN`
    /// (MS-RAP section 2.5).
    pub fn rap_opcode(&self) -> Option<u16> {
        match (self.block.command(), self.role) {
            (Command::TRANSACTION, Role::Primary) if self.block.word::<u8>(26)? == 0 => {
                self.parameter(0)
            }
            _ => None,
        }
    }

    /// Bytes of parameters and of data that the client takes back.
    pub fn max_counts(&self) -> Option<(u32, u32)> {
        match (self.block.command(), self.role) {
            (Command::NT_TRANSACT, Role::Primary) => {
                Some((self.block.word(11)?, self.block.word(15)?))
            }
            (_, Role::Primary) => {
                Some((self.block.word::<u16>(4)?.into(), self.block.word::<u16>(6)?.into()))
            }
            _ => None,
        }
    }

    /// The parameters in this message, as far as captured.
    pub fn parameters(&self) -> &'a [u8] {
        self.section(self.counts.parameter_offset, self.counts.parameter_count)
    }

    /// The data in this message, as far as captured.
    pub fn data(&self) -> &'a [u8] {
        self.section(self.counts.data_offset, self.counts.data_count)
    }

    /// The integer `at` bytes into the transaction's parameters, if this message holds it.
    pub(crate) fn parameter<T: Field>(&self, at: usize) -> Option<T> {
        let displacement = usize::try_from(self.counts.parameter_displacement).ok()?;
        T::read(self.parameters(), at.checked_sub(displacement)?)
    }

    /// The strings `at` bytes into the parameters, if this message holds their beginning.
    pub(crate) fn parameter_strings(&self, at: usize) -> Option<Strings<'a>> {
        if self.counts.parameter_displacement != 0 {
            return None;
        }
        let start = usize::try_from(self.counts.parameter_offset).ok()?;
        let end = start.checked_add(usize::try_from(self.counts.parameter_count).ok()?)?;
        let message = self.block.message();
        // Parameters that reach past the message are cut there, not waited for.
        Some(Strings::new(
            message.bytes(),
            start.checked_add(at)?,
            end.min(message.length()),
            message.is_unicode(),
        ))
    }

    fn section(&self, offset: u32, count: u32) -> &'a [u8] {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.block.message().bytes().get(offset..))
            .unwrap_or_default();
        usize::try_from(count).ok().and_then(|count| rest.get(..count)).unwrap_or(rest)
    }

    /// Mailslot writes have three setup words, nothing on pipes does.
    fn is_mailslot(&self) -> bool {
        self.block.word::<u8>(26) == Some(3)
    }
}

/// Whether a response to a transaction's request only asks for its secondaries: no words and no
/// error.
pub fn is_interim(block: Block<'_>) -> bool {
    block.command().is_transaction()
        && block.word_count() == Some(0)
        && block.message().status() == Some(0)
}

/// A subcommand of Transaction on a named pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeCommand(pub u16);

#[allow(missing_docs)]
impl PipeCommand {
    pub const SET_STATE: PipeCommand = PipeCommand(0x0001);
    pub const RAW_READ: PipeCommand = PipeCommand(0x0011);
    pub const QUERY_STATE: PipeCommand = PipeCommand(0x0021);
    pub const QUERY_INFO: PipeCommand = PipeCommand(0x0022);
    pub const PEEK: PipeCommand = PipeCommand(0x0023);
    pub const TRANSACT: PipeCommand = PipeCommand(0x0026);
    pub const RAW_WRITE: PipeCommand = PipeCommand(0x0031);
    pub const READ: PipeCommand = PipeCommand(0x0036);
    pub const WRITE: PipeCommand = PipeCommand(0x0037);
    pub const WAIT: PipeCommand = PipeCommand(0x0053);
    pub const CALL: PipeCommand = PipeCommand(0x0054);

    /// The name, or `None` for a code that has none.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            PipeCommand::SET_STATE => "SetNmPipeState",
            PipeCommand::RAW_READ => "RawReadNmPipe",
            PipeCommand::QUERY_STATE => "QueryNmPipeState",
            PipeCommand::QUERY_INFO => "QueryNmPipeInfo",
            PipeCommand::PEEK => "PeekNmPipe",
            PipeCommand::TRANSACT => "TransactNmPipe",
            PipeCommand::RAW_WRITE => "RawWriteNmPipe",
            PipeCommand::READ => "ReadNmPipe",
            PipeCommand::WRITE => "WriteNmPipe",
            PipeCommand::WAIT => "WaitNmPipe",
            PipeCommand::CALL => "CallNmPipe",
            _ => return None,
        })
    }

    /// Whether it works on an open pipe, whose id is in the second setup word. The others find
    /// the pipe by name and have a priority there.
    fn has_fid(self) -> bool {
        self.name().is_some() && self != PipeCommand::WAIT && self != PipeCommand::CALL
    }
}

/// Byte offsets of the 16-bit fields in the words of the short forms: total parameters, total
/// data, then count, offset and (unless it is a primary) displacement of both.
struct Layout {
    first: usize,
    displaced: bool,
}

const REQUEST: Layout = Layout { first: 18, displaced: false };
const SECONDARY: Layout = Layout { first: 4, displaced: true };
const RESPONSE: Layout = Layout { first: 6, displaced: true };

fn short(block: Block<'_>, layout: Layout) -> Option<Counts> {
    let field = |at| block.word::<u16>(at).map(u32::from);
    let Layout { first, displaced } = layout;
    let data = first + if displaced { 6 } else { 4 };
    Some(Counts {
        total_parameter_count: field(0)?,
        total_data_count: field(2)?,
        parameter_count: field(first)?,
        parameter_offset: field(first + 2)?,
        parameter_displacement: if displaced { field(first + 4)? } else { 0 },
        data_count: field(data)?,
        data_offset: field(data + 2)?,
        data_displacement: if displaced { field(data + 4)? } else { 0 },
    })
}

fn nt_request(block: Block<'_>) -> Option<Counts> {
    Some(Counts {
        total_parameter_count: block.word(3)?,
        total_data_count: block.word(7)?,
        parameter_count: block.word(19)?,
        parameter_offset: block.word(23)?,
        parameter_displacement: 0,
        data_count: block.word(27)?,
        data_offset: block.word(31)?,
        data_displacement: 0,
    })
}

fn nt_displaced(block: Block<'_>) -> Option<Counts> {
    Some(Counts {
        total_parameter_count: block.word(3)?,
        total_data_count: block.word(7)?,
        parameter_count: block.word(11)?,
        parameter_offset: block.word(15)?,
        parameter_displacement: block.word(19)?,
        data_count: block.word(23)?,
        data_offset: block.word(27)?,
        data_displacement: block.word(31)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn reads_a_pipe_transaction() {
        let fixed = words(
            32,
            &[
                (2, &[3]),
                (6, &[0, 4]),
                (20, &[84, 0, 3, 0, 84, 0, 2]),
                (28, &[0x26, 0, 0x34, 0x12]),
            ],
        );
        // Bytes begin at 67.
        let mut bytes = vec![0];
        bytes.extend(utf16("\\PIPE\\\0"));
        bytes.extend([0, 0, 1, 2, 3]);
        let bytes = message(0x25, 0xc001, &fixed, &bytes);
        let part = Part::parse(block(&bytes), true).unwrap();
        assert_eq!(part.role(), Role::Primary);
        assert_eq!(part.name().unwrap().decode(), "\\PIPE\\");
        assert_eq!(part.pipe_command_name(), Some("TransactNmPipe"));
        assert_eq!(part.pipe_fid(), Some(0x1234));
        assert_eq!(part.data(), [1, 2, 3]);
        assert_eq!(part.max_counts(), Some((0, 1024)));
        assert!(part.counts().is_whole());
        truncate(&bytes);
    }

    #[test]
    fn reads_a_mailslot_write() {
        let fixed = words(34, &[(26, &[3]), (28, &[1, 0, 1, 0, 2])]);
        let bytes = message(0x25, 0, &fixed, b"\\MAILSLOT\\BROWSE\0");
        let part = Part::parse(block(&bytes), true).unwrap();
        assert_eq!(part.name().unwrap().decode(), "\\MAILSLOT\\BROWSE");
        assert_eq!(part.pipe_command_name(), Some("MailslotWrite"));
        assert_eq!(part.pipe_fid(), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_secondaries_and_responses() {
        let short = [10, 0, 20, 0, 4, 0, 51, 0, 6, 0, 5, 0, 55, 0, 15, 0];
        let bytes = message(0x26, 0, &short, &[9; 9]);
        let part = Part::parse(block(&bytes), true).unwrap();
        let expected = Counts {
            total_parameter_count: 10,
            total_data_count: 20,
            parameter_count: 4,
            parameter_offset: 51,
            parameter_displacement: 6,
            data_count: 5,
            data_offset: 55,
            data_displacement: 15,
        };
        assert_eq!((part.role(), part.counts()), (Role::Secondary, expected));
        assert!(!part.counts().is_whole());
        assert_eq!(part.parameter::<u8>(0), None);
        assert_eq!(part.parameter::<u8>(6), Some(9));

        let mut fixed = words(20, &[(0, &short[..4])]);
        fixed[6..18].copy_from_slice(&short[4..]);
        let bytes = reply(0x32, 0, &fixed, &[9; 9]);
        let part = Part::parse(block(&bytes), false).unwrap();
        assert_eq!((part.role(), part.counts()), (Role::Response, expected));

        let mut fixed = vec![0; 36];
        let long = [10u32, 20, 4, 51, 6, 5, 55, 15];
        for (index, value) in long.iter().enumerate() {
            fixed[3 + index * 4..7 + index * 4].copy_from_slice(&value.to_le_bytes());
        }
        for (command, to_server) in [(0xa1, true), (0xa0, false)] {
            let bytes = message(command, 0, &fixed, &[9; 9]);
            let part = Part::parse(block(&bytes), to_server).unwrap();
            assert_eq!(part.counts(), expected);
            truncate(&bytes);
        }
    }

    #[test]
    fn distinguishes_interim_responses_from_errors() {
        let mut bytes = reply(0x32, 0xc001, &[], &[]);
        assert!(is_interim(block(&bytes)));
        assert!(Part::parse(block(&bytes), false).is_none());
        bytes[5] = 1;
        assert!(!is_interim(block(&bytes)));
        assert!(!is_interim(block(&reply(0x04, 0, &[], &[]))));
    }

    #[test]
    fn wild_offsets_give_nothing() {
        let mut fixed = vec![0xff; 36];
        fixed[35] = 0;
        let bytes = reply(0xa0, 0, &fixed, &[]);
        let part = Part::parse(block(&bytes), false).unwrap();
        assert_eq!((part.parameters(), part.data()), (&[][..], &[][..]));
        assert_eq!(part.parameter::<u8>(usize::MAX), None);
        assert!(part.parameter_strings(0).is_none());
    }
}
