//! The path under which sources import [`Part`]; [`registry`](crate::registry) defines it.

pub use crate::registry::Part;
