//! Security baselines: which settings touch a file server, what each costs here, and which one is guilty.
//!
//! [`setting`] is the waist: every form in which settings travel is read to it ([`read`]) and written from it
//! ([`mod@write`]).

pub mod read;
pub mod setting;
pub mod write;
