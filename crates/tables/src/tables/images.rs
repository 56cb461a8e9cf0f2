//! Table `images`: code of the kernel, of drivers and of programs in memory.

use crate::row::table;

table! {
    /// One image.
    Image, "images" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        process: u64, None, Public, "Number of the process; 0 is the kernel.";
        name: String, None, Path, "Name of the file.";
        base: u64, None, Public, "Address of its first byte.";
        size_bytes: u64, Bytes, Public, "Its size in memory.";
        symbols: Option<String>, None, Public, "The file that has its symbols: GUID and age of a PDB file, or a build id.";
        loaded_at: Option<i64>, Time, Public, "When it was loaded; null if that was before the trace.";
    }
}
