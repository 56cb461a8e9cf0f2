//! Table `slices`: what the server did for each operation, and when.
//!
//! [`slice`](crate::slice) has the kinds of slices and a builder for many rows.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One slice of one operation at the server.
    Slice, "slices" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        operation: u64, None, Public, "Number of the operation; rows of a recording are in this order.";
        kind: Cow<'static, str>, None, Public, "What the server did: queue, crypto_in, parse, processing, filesystem, io_wait, io, flush, lock_wait, crypto_out, send; of Windows' events also filesystem_slow, security, transport, transport_slow, transport_direct; within these disk, offcpu.";
        start: i64, Time, Public, "When it began, on the recording's clock. Windows' events do not say it: such slices follow each other from the request on.";
        duration_ns: i64, Nanoseconds, Public, "Duration. A slice whose time lies within that of another slice of the operation is a part of it.";
        cpu_ns: Option<i64>, Nanoseconds, Public, "Processor time.";
        cycles: Option<u64>, Count, Public, "Processor cycles.";
        hits: Option<u64>, Count, Public, "How often it happened, if one row represents several.";
    }
}
