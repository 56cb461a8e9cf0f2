//! Several connections for each session (multichannel).

use std::fmt;

use smbscope_tables::readable;

use super::bandwidth::NEEDS_SIZES;
use super::{Definition, Spec};
use crate::predict::plan::Plan;
use crate::predict::replay::{CHANNELS_MAX, Prediction};

/// As a number of connections.
pub(super) struct Channels;

impl Definition for Channels {
    type Value = usize;

    const SPEC: Spec = Spec {
        name: "channels",
        example: "channels=4",
        meaning: "each session spreads its requests over this many connections (multichannel), each with its own TCP \
                  windows",
        needs: NEEDS_SIZES,
    };

    fn parse(text: &str) -> Result<usize, String> {
        match text.parse() {
            Ok(channels @ 1..=CHANNELS_MAX) => Ok(channels),
            _ => Err(Self::invalid(format!("`{text}` is not a number from 1 to {CHANNELS_MAX}"))),
        }
    }

    fn print(channels: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{channels}")
    }

    fn sentence(channels: usize) -> String {
        format!("each session has {} connections", readable::count(channels as u64))
    }

    fn assumption(_: usize) -> &'static str {
        "All channels share one network path, and one process or thread of the server serves them, as in the recording."
    }

    fn plan(channels: usize, plan: &mut Plan) {
        plan.channels = channels;
    }

    fn warning(channels: usize, prediction: &Prediction) -> Option<String> {
        (prediction.further_channels > 0).then(|| {
            format!(
                "Sessions of the inputs already have {} additional connections; these stay, and each connection \
                 becomes {channels}.",
                readable::count(prediction.further_channels)
            )
        })
    }
}
