//! Clients that cache directories under leases (MS-SMB2 section 3.2.5.19.2).

use std::fmt;

use smbscope_tables::profile::{CacheOption, Profile};

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

pub(super) struct DirLease;

impl Definition for DirLease {
    type Value = ();

    const SPEC: Spec = Spec {
        name: "dirlease",
        example: "dirlease",
        meaning: "clients cache directories under leases (SMB 3): opens, listings and attributes are answered from \
                  memory until another client changes them",
        needs: shared::CACHE_NEEDS,
    };
    const TAKES_VALUE: bool = false;
    const CHANGES_DEMAND: bool = true;
    const CACHE: Option<CacheOption> = Some(CacheOption::DirLease);

    fn parse(_: &str) -> Result<(), String> {
        Ok(())
    }

    fn print((): (), _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn sentence((): ()) -> String {
        "clients cache directories under leases".to_owned()
    }

    fn assumption((): ()) -> &'static str {
        shared::CACHE_ASSUMPTION
    }

    fn plan((): (), plan: &mut Plan) {
        plan.cache = Self::CACHE;
    }

    fn apply((): (), profile: &mut Profile) -> bool {
        shared::keep_cache_option(profile, CacheOption::DirLease)
    }

    fn is_answerable((): (), prediction: &Prediction) -> bool {
        prediction.cached.creates > 0
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        shared::cache_note(plan, prediction)
    }
}
