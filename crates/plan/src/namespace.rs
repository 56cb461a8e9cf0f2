//! DFS namespaces: read, checked, rewritten, and moved in stages while users work.
//!
//! [`model`] is the waist: every form in which a namespace travels is read to it and written from it.

pub mod model;
