//! Documents as text, as one HTML file, and as JSON with its schema.

pub(crate) mod html;
pub(crate) mod json;
pub mod table;
pub(crate) mod text;
