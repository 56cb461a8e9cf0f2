//! Clients that share one open of a directory among their applications.

use std::fmt;

use smbscope_tables::profile::{CacheOption, Profile};

use super::{Definition, Spec, shared};
use crate::predict::plan::Plan;
use crate::predict::replay::Prediction;

const VALUE: &str = "collapse";

pub(super) struct DirCache;

impl Definition for DirCache {
    type Value = ();

    const SPEC: Spec = Spec {
        name: "dircache",
        example: "dircache=collapse",
        meaning: "a client opens a directory once for all of its applications that look at it within ten seconds",
        needs: shared::CACHE_NEEDS,
    };
    const CHANGES_DEMAND: bool = true;
    const CACHE: Option<CacheOption> = Some(CacheOption::DirCache);

    fn parse(text: &str) -> Result<(), String> {
        match text {
            VALUE => Ok(()),
            other => Err(Self::invalid(format!("unknown value `{other}`"))),
        }
    }

    fn print((): (), to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(VALUE)
    }

    fn sentence((): ()) -> String {
        "a client opens a directory once for all of its applications".to_owned()
    }

    fn assumption((): ()) -> &'static str {
        shared::CACHE_ASSUMPTION
    }

    fn plan((): (), plan: &mut Plan) {
        plan.cache = Self::CACHE;
    }

    fn apply((): (), profile: &mut Profile) -> bool {
        shared::keep_cache_option(profile, CacheOption::DirCache)
    }

    fn is_answerable((): (), prediction: &Prediction) -> bool {
        prediction.cached.creates > 0
    }

    fn note(plan: &Plan, prediction: &Prediction) -> Option<String> {
        shared::cache_note(plan, prediction)
    }
}
