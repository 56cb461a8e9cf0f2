//! How the views of this family are written down: fixed fields as a table of offsets, codes and
//! flags as newtypes with named constants.
//!
//! Owns the macros `view!`, `codes!` and `flags!` and what they need; not any message's layout.
//! MS-SMB2 section 2.2: offsets inside a message count from the first byte of its header.

use crate::read::{array_at, slice_at, u8_at, u16_at, u32_at, u64_at};

/// Something of a fixed size that is read at an offset.
pub(crate) trait Field: Sized {
    /// The value at `offset`, if captured whole.
    fn read(bytes: &[u8], offset: usize) -> Option<Self>;
}

impl Field for u8 {
    #[inline]
    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        u8_at(bytes, offset)
    }
}

impl Field for u16 {
    #[inline]
    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        u16_at(bytes, offset)
    }
}

impl Field for u32 {
    #[inline]
    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        u32_at(bytes, offset)
    }
}

impl Field for u64 {
    #[inline]
    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        u64_at(bytes, offset)
    }
}

impl<const N: usize> Field for [u8; N] {
    #[inline]
    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        array_at(bytes, offset).copied()
    }
}

/// A variable-length field of a message: empty where its length is zero (its offset is then
/// often zero too), `None` where it is not captured whole or lies in the header.
#[inline]
pub(crate) fn buffer(message: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    if length == 0 {
        return Some(&[]);
    }
    if offset < super::HEADER_BYTES {
        return None;
    }
    slice_at(message, offset, length)
}

/// As `buffer`, but what is captured of it where its end is missing.
#[inline]
pub(crate) fn buffer_part(message: &[u8], offset: usize, length: usize) -> &[u8] {
    if offset < super::HEADER_BYTES {
        return &[];
    }
    let rest = message.get(offset..).unwrap_or_default();
    rest.get(..length).unwrap_or(rest)
}

/// A list of 16-bit codes, as far as captured.
pub(crate) fn u16_list(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.as_chunks::<2>().0.iter().map(|&pair| u16::from_le_bytes(pair))
}

/// Declares a message view with accessors for its fixed fields.
macro_rules! view {
    (
        $(#[$meta:meta])*
        $view:ident { $( $(#[$doc:meta])* $name:ident: $kind:ty = $offset:expr; )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a>(pub &'a [u8]);

        impl $view<'_> {
            /// The size that the sender claims for the fixed part of the body; not trusted.
            #[inline]
            pub fn structure_size(self) -> Option<u16> {
                $crate::read::u16_at(self.0, 64)
            }

            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(self) -> Option<$kind> {
                    <$kind as $crate::smb2::view::Field>::read(self.0, $offset)
                }
            )*

            /// Calls every accessor of a fixed field; for truncation tests.
            #[cfg(test)]
            pub(crate) fn touch(self) {
                let _ = self.structure_size();
                $( let _ = self.$name(); )*
            }
        }
    };
}

/// Declares a newtype over an integer whose values have names.
macro_rules! codes {
    (
        $(#[$meta:meta])*
        $code:ident($int:ty) { $( $constant:ident = $value:literal => $name:literal, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $code(pub $int);

        #[allow(missing_docs)]
        impl $code {
            $( pub const $constant: $code = $code($value); )*
        }

        impl $code {
            /// The name that the specification gives the value; `None` for an unknown one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some($name), )*
                    _ => None,
                }
            }
        }

        impl $crate::smb2::view::Field for $code {
            #[inline]
            fn read(bytes: &[u8], offset: usize) -> Option<Self> {
                Some($code(<$int as $crate::smb2::view::Field>::read(bytes, offset)?))
            }
        }
    };
}

/// Declares a newtype over an integer whose bits have names.
macro_rules! flags {
    (
        $(#[$meta:meta])*
        $flags:ident($int:ty) { $( $constant:ident = $value:literal, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $flags(pub $int);

        #[allow(missing_docs)]
        impl $flags {
            $( pub const $constant: $flags = $flags($value); )*
        }

        impl $flags {
            /// Whether all bits of `other` are set.
            #[inline]
            pub fn contains(self, other: $flags) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl $crate::smb2::view::Field for $flags {
            #[inline]
            fn read(bytes: &[u8], offset: usize) -> Option<Self> {
                Some($flags(<$int as $crate::smb2::view::Field>::read(bytes, offset)?))
            }
        }
    };
}

pub(crate) use {codes, flags, view};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A header of zeros except for the magic, then `body`.
    pub(crate) fn message(body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(&crate::smb2::MAGIC);
        bytes.extend_from_slice(body);
        bytes
    }

    /// Overwrites the bytes at `offset`, growing the message with zeros where it is too short.
    pub(crate) fn put(bytes: &mut Vec<u8>, offset: usize, value: &[u8]) {
        let end = offset + value.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset..end].copy_from_slice(value);
    }

    /// Gives `look` the message cut off at every byte, and with every byte set to 0xff in turn:
    /// the accessors must neither panic nor loop.
    pub(crate) fn abuse(message: &[u8], look: impl Fn(&[u8])) {
        for end in 0..=message.len() {
            look(&message[..end]);
        }
        let mut broken = message.to_vec();
        for at in 0..broken.len() {
            let was = std::mem::replace(&mut broken[at], 0xff);
            look(&broken);
            broken[at] = was;
        }
        look(&vec![0xff; message.len()]);
    }

    #[test]
    fn buffers_are_whole_or_absent_and_never_in_the_header() {
        let bytes = message(b"abcd");
        assert_eq!(buffer(&bytes, 0, 0), Some(&b""[..]));
        assert_eq!(buffer(&bytes, 65, 3), Some(&b"bcd"[..]));
        assert_eq!(buffer(&bytes, 65, 4), None);
        assert_eq!(buffer(&bytes, 8, 4), None);
        assert_eq!(buffer(&bytes, usize::MAX, usize::MAX), None);
        assert_eq!(buffer_part(&bytes, 65, 9), b"bcd");
        assert_eq!(buffer_part(&bytes, 99, 9), b"");
        assert_eq!(u16_list(&[1, 2, 3]).collect::<Vec<_>>(), [0x201]);
    }
}
