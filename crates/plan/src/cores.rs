//! Receive work of network adapters over CPUs: what the machine is, what is wrong with its settings, a layout,
//! its commands, and what it would bring.

pub mod added;
pub mod assemble;
pub mod bundle;
pub mod commands;
pub mod current;
pub mod findings;
mod json;
pub mod layout;
pub mod load;
pub mod prediction;
pub mod processes;
pub mod read;
pub mod toeplitz;
pub mod topology;
pub mod traced;
