//! Another receive window of TCP.

use std::fmt;

use smbscope_tables::quantity::parse_size;
use smbscope_tables::readable;

use super::bandwidth::NEEDS_SIZES;
use super::{Definition, Spec};
use crate::predict::plan::Plan;

/// In bytes.
pub(super) struct Window;

impl Definition for Window {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "window",
        example: "window=64240",
        meaning: "client and server accept at most this many bytes of a connection at once (TCP receive window)",
        needs: NEEDS_SIZES,
    };

    fn parse(text: &str) -> Result<f64, String> {
        // TCP's own figures are bytes, and written without a unit.
        let bytes = match text.parse() {
            Ok(bytes) => bytes,
            Err(_) => parse_size(text).map_err(|error| error.to_string())?,
        };
        match bytes {
            0 => Err(Self::invalid("a closed window lets no data through")),
            bytes => Ok(bytes as f64),
        }
    }

    fn print(bytes: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{bytes:.0}")
    }

    fn sentence(bytes: f64) -> String {
        format!("TCP's receive windows are {} bytes", readable::count(bytes as u64))
    }

    fn assumption(_: f64) -> &'static str {
        "Neither side announced a smaller window in the recording."
    }

    fn plan(bytes: f64, plan: &mut Plan) {
        plan.window_bytes = Some(bytes);
    }
}
