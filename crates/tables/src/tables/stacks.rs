//! Table `stacks`: chains of calls of samples, one row for each frame.

use std::sync::Arc;

use crate::row::table;

table! {
    /// One frame of one stack.
    StackFrame, "stacks" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        stack: u64, None, Public, "Number of the stack, unique in the recording.";
        depth: u64, None, Public, "0 is the innermost frame.";
        address: u64, None, Public, "Address of the instruction.";
        function: Option<Arc<str>>, None, Public, "Name of the function.";
        module: Option<Arc<str>>, None, Public, "Module of the address.";
    }
}
