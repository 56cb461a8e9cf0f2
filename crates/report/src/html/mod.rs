//! The report as one self-contained HTML file.
use crate::{Meta, Report};
/// The page.
pub fn html(_report: &Report, _meta: &Meta) -> String {
    String::new()
}
