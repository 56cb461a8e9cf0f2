//! Packets to SMB operations: decodes captures of SMB1, SMB2 and SMB3 into Arrow tables.
//!
//! The crate reads capture files (pcap, pcapng, Network Monitor, snoop, ERF and others, plain or
//! compressed with gzip or zstd), packets from a network interface, or segments that the caller
//! supplies. It reassembles TCP connections and SMB Direct over RDMA,
//! decrypts messages with keys that the caller has, pairs requests with replies, and yields [`Part`]s:
//! batches of the operations table, and rows of connections, sessions, trees, handles, referrals and
//! coverage. It does not own the layout of messages (`smbscope-wire`) nor of tables
//! (`smbscope-tables`).
//!
//! # A capture to batches
//!
//! ```
//! use smbscope_capture::{Decoder, Input, Options, Part};
//!
//! # fn main() -> Result<(), smbscope_capture::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/lease-break.pcapng");
//! // let path = "lease-break.pcapng";
//! let input = Input::Path(path.into());
//! let mut operations = 0;
//! for part in Decoder::open(vec![input], Options::default())? {
//!     match part? {
//!         // An `arrow::record_batch::RecordBatch`, one row for each SMB operation.
//!         Part::Operations(batch) => operations += batch.num_rows(),
//!         // Counters of everything that was not decoded. This part always comes.
//!         Part::Coverage(coverage) => assert_eq!(coverage.operations, operations as u64),
//!         _ => {}
//!     }
//! }
//! assert!(operations > 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Entry points
//!
//! * [`Decoder`] decodes files on background threads and is an iterator of parts. Several files that
//!   continue each other (a ring) are one recording. [`Options`] selects tables and columns and
//!   carries decryption keys; [`Progress`] can be read from any thread.
//! * [`PushDecoder`] decodes segments on the caller's thread. A probe inside a server uses it.
//! * [`live::Recorder`] receives packets from an interface (Linux).
//! * [`mod@file`], [`frame`] and [`stream`] are the lower layers, public for tools and fuzz targets:
//!   records of a capture file, the TCP segment in a frame, and the messages in a stream.
//!
//! # Layers
//!
//! Modules are stacked, and a module uses only modules below it; the architecture test of the
//! workspace asserts this order.
//!
//! | layer | modules | turns |
//! |---|---|---|
//! | live | `live` | packets of an interface into segments |
//! | drivers | `decoder`, `push_decoder` | inputs into parts: threads, order, progress |
//! | shard | `shard` | segments into connections: the flow table |
//! | services | `waits` | packets of other services, and of connections before SMB, into waits |
//! | connections | `tcp`, `resolve` | segments into messages; rows of one connection into rows with sessions, trees, paths and users |
//! | messages | `smb`, `kdc`, `quic`, `rdma`, `netbeui`, `closer_look` | messages into operations; frames in tunnels and fragments into segments; tickets into user names; RDMA into streams of messages; what is visible of SMB over QUIC |
//! | bytes | `frame`, `stream`, `options` | frames into segments; segments into a stream, the stream into messages |
//! | settings | `file`, `limits`, `outcome` | files into frames; what a shard hands to the resolver |
//!
//! # What to rely on
//!
//! * **Input is untrusted.** No panic, no unchecked index, no allocation by an unchecked length, no
//!   recursion.
//! * **Everything has a limit** ([`Limits`]), and every loss is counted in the coverage: lost packets,
//!   cut messages, evicted connections, unanswered requests.
//! * **A value that is unknown is null, never zero.** An encrypted message without a key has a row
//!   with a null command.
//! * **The result does not depend on the number of threads**, nor on how the input is split into
//!   chunks.
//! * Payload is skipped by length: of a 64 KiB read only the first bytes are ever touched.

mod closer_look;
mod decoder;
pub mod file;
pub mod frame;
mod kdc;
mod limits;
pub mod live;
mod netbeui;
mod options;
mod outcome;
mod push_decoder;
mod quic;
pub mod rdma;
mod resolve;
mod shard;
mod smb;
pub mod stream;
mod tcp;
mod waits;

pub use decoder::{Decoder, Progress};
pub use limits::Limits;
pub use options::{Error, Input, Options, Tables};
pub use outcome::Endpoints;
pub use push_decoder::{Amend, PushDecoder};
pub use smbscope_tables::Part;
