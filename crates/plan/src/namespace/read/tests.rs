//! Each form on the smallest file that has it.
