//! DFS namespaces: read, checked, rewritten, and moved in stages while users work.
//!
//! [`model`] is the waist: every form in which a namespace travels is read to it and written from it.

pub mod form;
pub mod model;
pub mod read;
mod text;
pub mod write;
