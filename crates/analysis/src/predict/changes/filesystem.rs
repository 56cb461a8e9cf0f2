//! A faster or slower file system of the server.

use std::fmt;

use smbscope_tables::profile::Profile;
use smbscope_tables::readable;
use smbscope_tables::slice::Kind;

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;

/// Slices that faster storage shortens.
const STORAGE: &[Kind] = &[Kind::Filesystem, Kind::FilesystemSlow, Kind::Io, Kind::Flush];

/// As a factor of speed.
pub(super) struct Filesystem;

impl Definition for Filesystem {
    type Value = f64;

    const SPEC: Spec = Spec {
        name: "filesystem",
        example: "filesystem=4x",
        meaning: "the server's file system is this many times as fast (0.5x: it takes twice as long)",
        needs: "the slice filesystem, io or flush of the server (smbscope record)",
    };
    const CHANGES_DEMAND: bool = true;

    fn parse(text: &str) -> Result<f64, String> {
        shared::parse_factor(text).map_err(Self::invalid)
    }

    fn print(factor: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{factor}x")
    }

    fn sentence(factor: f64) -> String {
        format!("the server's file system is {} times as fast", readable::decimal(factor))
    }

    fn assumption(_: f64) -> &'static str {
        super::cpu::ASSUMPTION
    }

    fn plan(factor: f64, plan: &mut Plan) {
        shared::plan_slices(plan, Self::slices(factor));
    }

    fn apply(factor: f64, profile: &mut Profile) -> bool {
        shared::scale_slices(profile, Self::slices(factor))
    }

    fn slices(factor: f64) -> Option<(&'static [Kind], f64)> {
        Some((STORAGE, 1.0 / factor))
    }
}
