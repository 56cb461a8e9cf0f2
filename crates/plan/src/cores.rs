//! Where the receive work of network adapters goes, and how to spread it over cores.

pub mod commands;
pub mod layout;
pub mod prediction;
pub mod toeplitz;
pub mod topology;
