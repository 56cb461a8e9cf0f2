//! DFS namespaces: read, checked, rewritten, and moved in stages while users work.
//!
//! [`model`] is the waist: every form in which a namespace travels is read to it and written from it. [`read`] and [`mod@write`]
//! know the forms, [`check`] judges, [`rewrite`] changes, [`difference`] compares.

pub mod check;
pub mod difference;
pub mod form;
pub mod model;
pub mod read;
pub mod referral;
pub mod resolution;
pub mod rewrite;
mod text;
pub mod write;
