//! What every SMB1 command consists of - words and bytes - and the walk along an AndX chain.
//!
//! Owns the bounds: words end where WordCount says, bytes where ByteCount says, both no later
//! than what was captured. The commands' own layouts are in the other files of this folder.
//!
//! MS-CIFS sections 2.2.3.2, 2.2.3.3 and 2.2.3.4 (AndX).

use super::strings::Strings;
use super::{Command, Flags, HEADER_BYTES, Message};
use crate::read::{slice_at, u8_at, u16_at, u32_at, u64_at};

/// Most members that a chain is followed for; real ones have at most four.
const CHAIN_LIMIT: usize = 32;

/// One command of a message with its words and bytes.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    message: Message<'a>,
    command: Command,
    offset: usize,
    words: &'a [u8],
    words_length: usize,
}

impl<'a> Block<'a> {
    /// The command whose WordCount lies at `offset` of the message.
    pub fn new(message: Message<'a>, command: Command, offset: usize) -> Block<'a> {
        let bytes = message.bytes();
        let declared = u8_at(bytes, offset).map_or(0, |count| usize::from(count) * 2);
        // Servers announce 42 words in an extended NtCreateAndX response but send 50
        // (MS-SMB section 2.2.4.9.2 and its product note).
        let words_length = match declared {
            84 if command == Command::NT_CREATE_AND_X && is_reply(message) => 100,
            other => other,
        };
        let rest = offset.checked_add(1).and_then(|start| bytes.get(start..)).unwrap_or_default();
        Block {
            message,
            command,
            offset,
            words: rest.get(..words_length).unwrap_or(rest),
            words_length,
        }
    }

    /// The command.
    pub fn command(&self) -> Command {
        self.command
    }

    /// The message it is part of.
    pub fn message(&self) -> Message<'a> {
        self.message
    }

    /// Where in the message its WordCount lies.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// WordCount as sent. An error response has none.
    pub fn word_count(&self) -> Option<u8> {
        u8_at(self.message.bytes(), self.offset)
    }

    /// The words, as far as captured.
    pub fn words(&self) -> &'a [u8] {
        self.words
    }

    /// Where the words end and ByteCount begins, if WordCount was captured.
    pub fn words_end(&self) -> Option<usize> {
        self.word_count()?;
        self.offset.checked_add(1 + self.words_length)
    }

    /// ByteCount as sent; only its low 16 bits when a large read or write carries more.
    pub fn byte_count(&self) -> Option<u16> {
        u16_at(self.message.bytes(), self.words_end()?)
    }

    /// Where the bytes begin.
    pub fn bytes_offset(&self) -> Option<usize> {
        self.words_end()?.checked_add(2)
    }

    /// Where the bytes end by ByteCount, captured or not.
    pub fn bytes_end(&self) -> Option<usize> {
        self.bytes_offset()?.checked_add(usize::from(self.byte_count()?))
    }

    /// The bytes, as far as captured.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        let rest = self.message.bytes().get(self.bytes_offset()?..)?;
        Some(rest.get(..usize::from(self.byte_count()?)).unwrap_or(rest))
    }

    /// The strings in the bytes, from `skip` bytes on.
    pub fn strings(&self, skip: usize) -> Option<Strings<'a>> {
        Some(Strings::new(
            self.message.bytes(),
            self.bytes_offset()?.checked_add(skip)?,
            self.bytes_end()?,
            self.message.is_unicode(),
        ))
    }

    /// The bytes from `skip` on for `length`, as far as captured.
    pub(crate) fn blob(&self, skip: usize, length: usize) -> Option<&'a [u8]> {
        let rest = self.bytes()?.get(skip..)?;
        Some(rest.get(..length).unwrap_or(rest))
    }

    /// The next command of the chain and where its WordCount lies.
    pub fn and_x(&self) -> Option<(Command, usize)> {
        if !self.command.is_and_x() {
            return None;
        }
        let command = Command(u8_at(self.words, 0)?);
        let offset = usize::from(u16_at(self.words, 2)?);
        (command != Command::NO_AND_X_COMMAND).then_some((command, offset))
    }

    /// The integer `at` bytes into the words.
    #[inline]
    pub(crate) fn word<T: Field>(&self, at: usize) -> Option<T> {
        T::read(self.words, at)
    }
}

fn is_reply(message: Message<'_>) -> bool {
    message.flags().is_some_and(|flags| flags.has(Flags::REPLY))
}

/// The commands of a message in order. The first is there as soon as its command byte was
/// captured; a later one as soon as the AndX fields before it name it.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    message: Message<'a>,
    next: Option<(Command, usize)>,
    left: usize,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(message: Message<'a>) -> Blocks<'a> {
        Blocks {
            message,
            next: message.command().map(|command| (command, HEADER_BYTES)),
            left: CHAIN_LIMIT,
        }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    fn next(&mut self) -> Option<Block<'a>> {
        let (command, offset) = self.next.take()?;
        self.left = self.left.checked_sub(1)?;
        let block = Block::new(self.message, command, offset);
        // Offsets only grow and stay in the message, so a looping chain ends.
        self.next = block.and_x().filter(|&(_, next)| {
            next < self.message.length() && block.words_end().is_some_and(|end| next >= end)
        });
        Some(block)
    }
}

/// An integer that can be read from words or parameters.
pub(crate) trait Field: Sized {
    fn read(bytes: &[u8], at: usize) -> Option<Self>;
}

macro_rules! fields {
    ($($type:ty, $read:expr;)*) => {
        $(impl Field for $type {
            #[inline]
            fn read(bytes: &[u8], at: usize) -> Option<Self> {
                $read(bytes, at)
            }
        })*
    };
}

fields! {
    u8, u8_at;
    u16, u16_at;
    u32, u32_at;
    u64, u64_at;
    i16, |bytes, at| u16_at(bytes, at).map(u16::cast_signed);
    i32, |bytes, at| u32_at(bytes, at).map(u32::cast_signed);
    [u8; 16], |bytes, at| slice_at(bytes, at, 16)?.try_into().ok();
}

/// Declares a view: a struct around `$base` with one accessor per fixed field, read with
/// `$base::$read` at the given byte offset. `also` names the hand-written accessors, so that the
/// truncation tests reach them as well.
macro_rules! view {
    (
        $(#[$meta:meta])*
        $name:ident($base:ident.$read:ident) {
            $($(#[$field_meta:meta])* $field:ident: $type:ty = $offset:literal,)*
        }
        $(also { $($extra:ident),* $(,)? })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a> {
            #[allow(dead_code)]
            base: $base<'a>,
        }

        impl<'a> $name<'a> {
            /// Reads `base` as this message.
            pub fn new(base: $base<'a>) -> Self {
                Self { base }
            }

            $(
                $(#[$field_meta])*
                pub fn $field(&self) -> Option<$type> {
                    self.base.$read::<$type>($offset)
                }
            )*

            #[cfg(test)]
            pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
                vec![
                    $((stringify!($field), format!("{:?}", self.$field())),)*
                    $($((stringify!($extra), format!("{:?}", self.$extra())),)*)?
                ]
            }
        }
    };
}
pub(crate) use view;

#[cfg(test)]
mod tests {
    use super::super::testing::message;
    use super::*;

    fn commands(bytes: &[u8]) -> Vec<u8> {
        Message::new(bytes, bytes.len()).unwrap().blocks().map(|block| block.command().0).collect()
    }

    #[test]
    fn words_and_bytes_are_bounded() {
        let bytes = message(0x04, 0, &[1, 0, 2, 0], b"abc");
        let view = Message::new(&bytes, bytes.len()).unwrap();
        let block = view.blocks().next().unwrap();
        assert_eq!(block.word_count(), Some(2));
        assert_eq!(block.words(), [1, 0, 2, 0]);
        assert_eq!(block.byte_count(), Some(3));
        assert_eq!(block.bytes(), Some(&b"abc"[..]));
        assert_eq!(block.bytes_offset(), Some(39));
        assert_eq!(block.word::<u32>(0), Some(0x2_0001));
        assert_eq!(block.word::<u32>(2), None);

        let cut = Message::new(&bytes[..34], bytes.len()).unwrap();
        let block = cut.blocks().next().unwrap();
        assert_eq!((block.words(), block.bytes()), (&[1][..], None));
    }

    #[test]
    fn follows_a_chain() {
        // SessionSetupAndX, then TreeConnectAndX at 32 + 1 + 4 + 2 = 39.
        let mut bytes = message(0x73, 0, &[0x75, 0, 39, 0], &[]);
        bytes.extend([2, 0xff, 0, 0, 0, 0, 0]);
        assert_eq!(commands(&bytes), [0x73, 0x75]);
        // Not captured, but named and inside the message.
        let cut = Message::new(&bytes[..37], bytes.len()).unwrap();
        let last = cut.blocks().last().unwrap();
        assert_eq!((last.command(), last.word_count()), (Command(0x75), None));
        assert_eq!(cut.blocks().count(), 2);
    }

    #[test]
    fn malformed_chains_end() {
        let itself = message(0x75, 0, &[0x75, 0, 32, 0], &[]);
        assert_eq!(commands(&itself), [0x75]);
        let back = message(0x75, 0, &[0x75, 0, 0, 0], &[]);
        assert_eq!(commands(&back), [0x75]);
        let beyond = message(0x75, 0, &[0x75, 0, 0xff, 0xff], &[]);
        assert_eq!(commands(&beyond), [0x75]);
        let error = message(0x75, 0, &[], &[]);
        assert_eq!(commands(&error), [0x75]);
        // A very long chain of the smallest members is cut.
        let mut long = message(0x75, 0, &[0x75, 0, 39, 0], &[]);
        for member in 1..100u16 {
            let next = 39 + member * 5;
            long.extend([2, 0x75, 0, next as u8, (next >> 8) as u8]);
        }
        assert_eq!(commands(&long).len(), CHAIN_LIMIT);
    }
}
