//! Receive work of network adapters over processors: what the machine is, what is wrong with its settings, a layout,
//! and what it would bring.

pub mod assemble;
pub mod bundle;
pub mod findings;
pub mod read;
pub mod topology;
