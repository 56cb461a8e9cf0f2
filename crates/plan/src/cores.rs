//! Where the receive work of network adapters goes, and how to spread it over cores.

pub mod assemble;
pub mod commands;
pub mod findings;
pub mod layout;
pub mod prediction;
pub mod read;
pub mod toeplitz;
pub mod topology;
