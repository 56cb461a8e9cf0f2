//! What several changes share: reading and printing values, slices of profiles, block sizes.

use std::fmt;

use smbscope_tables::profile::{CacheOption, Profile};
use smbscope_tables::slice::Kind;
use smbscope_tables::{quantity, readable};

use super::{BlockSizes, Definition, Spec};
use crate::predict::plan::Plan;
use crate::predict::replay::{Prediction, SizeCosts};

/// Smallest block: a sector.
const BLOCK_MIN: u64 = 512;
/// Largest block. The 16 bits of credits, 64 KiB each, are never granted in practice.
const BLOCK_MAX: u64 = 16 << 20;

/// `on` or `off`.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}

pub(super) fn print_switch(is_on: bool, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    to.write_str(if is_on { "on" } else { "off" })
}

/// `4x`, `0.5x`: a factor of speed.
pub(super) fn parse_factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', 'X']).and_then(|text| text.trim().parse::<f64>().ok());
    number
        .filter(|factor| factor.is_finite() && (1e-6..=1e6).contains(factor))
        .ok_or_else(|| format!("`{text}` is not a factor from 0.000001x to 1000000x"))
}

/// A share as a percentage, to nine decimals of the share.
pub(super) fn print_share(share: f64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(to, "{}%", (1e9 * share).round() / 1e7)
}

/// Multiplies the slices' times of all commands and sizes; false where the profile has none of them.
pub(super) fn scale_slices(profile: &mut Profile, slices: Option<(&'static [Kind], f64)>) -> bool {
    let (kinds, share) = slices.unwrap_or_default();
    let costs = profile.commands.iter_mut().flat_map(|command| {
        std::iter::once(&mut command.cost)
            .chain(command.sizes.iter_mut().map(|size| &mut size.cost))
    });
    let parts = costs.flat_map(|cost| &mut cost.parts);
    let mut is_there = false;
    for part in parts.filter(|part| part.part.is_some_and(|kind| kinds.contains(&kind))) {
        is_there = true;
        part.scale(share);
    }
    is_there
}

/// Multiplies the slices' shares in a plan.
pub(super) fn plan_slices(plan: &mut Plan, slices: Option<(&'static [Kind], f64)>) {
    let (kinds, share) = slices.unwrap_or_default();
    kinds.iter().for_each(|kind| plan.slices[*kind as usize] *= share);
}

/// Leaves the variants of a profile with this cache; false where a scenario has none.
pub(super) fn keep_cache_option(profile: &mut Profile, option: CacheOption) -> bool {
    for scenario in &mut profile.scenarios {
        scenario.variants.retain(|variant| variant.option == option);
    }
    !profile.scenarios.iter().any(|scenario| scenario.variants.is_empty())
}

/// What caches do, for both of the changes to them.
pub(super) fn cache_note(plan: &Plan, prediction: &Prediction) -> Option<String> {
    plan.cache?;
    let all: u64 = prediction.sent.iter().map(|one| one.before).sum();
    Some(format!(
        "The clients' caches answer {} of {} operations; changes by other clients invalidate cached directories {} \
         times.",
        readable::count(prediction.cached.answered),
        readable::count(all),
        readable::count(prediction.cached.breaks)
    ))
}

pub(super) const CACHE_NEEDS: &str =
    "file and folder names: Create requests in plaintext, with paths";

pub(super) const CACHE_ASSUMPTION: &str = "Operations that are still sent cost what they cost in the recording. A change \
                                           that breaks another client's lease does not wait for the break.";

/// What signing and encryption change, for both changes.
pub(super) fn protection_note(plan: &Plan, prediction: &Prediction) -> Option<String> {
    plan.is_other_protection().then(|| {
        format!(
            "{} operations are signed or encrypted differently than in the recording.",
            readable::count(prediction.protected.changed)
        )
    })
}

pub(super) const PROTECTION_NEEDS: &str = "the costs of the new and of the current algorithm (--calibration FILE, from \
                                           `smbscope predict calibrate`); for off the server's slices crypto_in or \
                                           crypto_out suffice";

pub(super) const PROTECTION_ASSUMPTION: &str = "Server and client spend on each message and on its bytes the time that was \
                                                measured on the calibrated machine, one after the other. Longer waits for \
                                                the server's CPUs are predicted for load runs with counters only.";

/// A change of the size of reads, of writes, or of both.
pub(super) trait BlockChange {
    const SPEC: Spec;
    /// What gets another size, as in "contiguous reads use ...".
    const WHAT: &'static str;
    const READS: bool;
    const WRITES: bool;
}

impl<C: BlockChange> Definition for C {
    /// In bytes.
    type Value = u64;

    const SPEC: Spec = C::SPEC;
    const CHANGES_DEMAND: bool = true;

    fn parse(text: &str) -> Result<u64, String> {
        let bytes = quantity::parse_size(text).map_err(|error| error.to_string())?;
        if (BLOCK_MIN..=BLOCK_MAX).contains(&bytes) {
            Ok(bytes)
        } else {
            Err(Self::invalid("a read or write moves 512 bytes to 16 MiB"))
        }
    }

    fn print(bytes: u64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&quantity::size_text(bytes))
    }

    fn sentence(bytes: u64) -> String {
        format!("contiguous {} use blocks of {}", C::WHAT, readable::bytes(bytes))
    }

    fn assumption(_: u64) -> &'static str {
        "Contiguous pieces within 10 ms of each other are merged into larger blocks; a smaller block becomes several \
         requests, one after the other."
    }

    fn plan(bytes: u64, plan: &mut Plan) {
        let sizes = Self::block_sizes(bytes);
        plan.read_block = sizes.read.or(plan.read_block);
        plan.write_block = sizes.write.or(plan.write_block);
    }

    fn block_sizes(bytes: u64) -> BlockSizes {
        BlockSizes { read: C::READS.then_some(bytes), write: C::WRITES.then_some(bytes) }
    }

    fn is_answerable(_: u64, prediction: &Prediction) -> bool {
        let [reads, writes] = prediction.moves;
        C::READS && reads > 0 || C::WRITES && writes > 0
    }

    fn warning(bytes: u64, prediction: &Prediction) -> Option<String> {
        block_warning(Self::block_sizes(bytes), prediction)
    }
}

/// A block outside of the recorded sizes.
fn block_warning(sizes: BlockSizes, prediction: &Prediction) -> Option<String> {
    let block = sizes.read.or(sizes.write)?;
    let learnt = concerned(sizes, &prediction.baseline.sizes).filter(|one| one.most_bytes > 0);
    let least = learnt.clone().map(|one| one.least_bytes).min()?;
    let most = learnt.map(|one| one.most_bytes).max()?;
    (!(least..=most).contains(&block)).then(|| {
        format!(
            "Reads and writes were recorded with {} to {}; a block of {} is outside of that range.",
            readable::bytes(least),
            readable::bytes(most),
            readable::bytes(block)
        )
    })
}

/// What was learnt of the reads and writes whose size changes.
pub(super) fn concerned(
    sizes: BlockSizes,
    [read, write]: &[SizeCosts; 2],
) -> impl Iterator<Item = &SizeCosts> + Clone {
    let read = sizes.read.map(|_| read);
    let write = sizes.write.map(|_| write);
    read.into_iter().chain(write)
}
