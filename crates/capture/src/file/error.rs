//! Why a capture file could not be read: what, where, and what to do about it.
//!
//! A file that ends early is not an error: it is read up to its end (`FileSummary::cut_off`).

use std::io;

/// A file that cannot be read as a capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// No such file.
    #[error("{name}: no such file")]
    NotFound {
        /// The path as given.
        name: String,
    },
    /// The file may not be read.
    #[error("{name}: permission denied; make it readable for this user or run as its owner")]
    PermissionDenied {
        /// The path as given.
        name: String,
    },
    /// A folder where a file was expected.
    #[error("{name}: is a folder; expected a capture file")]
    IsFolder {
        /// The path as given.
        name: String,
    },
    /// The file could not be opened for another reason.
    #[error("{name}: cannot open: {source}")]
    Open {
        /// The path as given.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// An empty file.
    #[error(
        "{name}: is empty; expected a capture (pcap, pcapng or another format, plain or compressed with gzip or zstd)"
    )]
    Empty {
        /// The path as given.
        name: String,
    },
    /// Neither a capture nor another known format.
    #[error(
        "{name}: not a capture{inside} (first bytes {first}; expected pcap, pcapng, Network \
         Monitor, snoop, ERF, Sniffer, a trace of Windows or Linux, or gzip or zstd of them)"
    )]
    NotACapture {
        /// The path as given.
        name: String,
        /// Where the bytes were found, for compressed files.
        inside: String,
        /// The first bytes in hexadecimal and as text.
        first: String,
    },
    /// Compressed data of which nothing, or too little to recognise a format, could be unpacked.
    #[error("{name}: the {compression} data does not contain a capture: {reason}")]
    NothingInside {
        /// The path as given.
        name: String,
        /// The compression's name.
        compression: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// Another known format, with the tool that converts it.
    #[error("{name}: is {what}, which is not supported; {advice}")]
    Unsupported {
        /// The path as given.
        name: String,
        /// The format.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A format that is read, but not this variant of it.
    #[error("{name}: {reason}, so it is not supported; {advice}")]
    UnknownVariant {
        /// The path as given.
        name: String,
        /// What is not known.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// The system failed to continue reading.
    #[error("{name}: cannot read at byte {offset}: {source}")]
    Read {
        /// The path as given.
        name: String,
        /// Bytes read of the file (as stored, compressed or not) before the failure.
        offset: u64,
        /// The system's reason.
        source: io::Error,
    },
}
