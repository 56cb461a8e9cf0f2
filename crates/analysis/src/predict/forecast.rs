//! What a prediction consists of, for `report` to show: from recorded operations, and from a profile.
//!
//! Owns the data only. `smbscope` reads the recordings, and `report` has the words and tables.

use smbscope_tables::profile::{CacheOption, Profile};

use super::averages::{Cell, table};
use super::capacity::{Capacity, NoCapacity};
use super::changes::{Change, MissingInput};
use super::replay::Prediction;

/// What changes would bring by recorded operations, and how far that can be trusted.
pub struct RecordedForecast {
    /// In the order in which they apply.
    pub changes: Vec<Change>,
    pub prediction: Prediction,
    /// How long all users of a load run together were measured, s.
    pub users_s: Option<f64>,
    /// How many users the server carries today.
    pub capacity: Result<Capacity, NoCapacity>,
    /// How many it carries with the changes, where they are known to change that.
    pub changed_capacity: Option<Capacity>,
    /// Other effects of the changes, one sentence each.
    pub notes: Vec<String>,
    /// Where the prediction leaves what was measured, a sentence each.
    pub warnings: Vec<String>,
}

/// What changes would bring by the means of a profile.
pub struct ProfileForecast {
    pub today: Profile,
    pub changed: Profile,
    /// In the order in which they apply.
    pub changes: Vec<Change>,
    /// By scenario and cache, then the totals.
    pub rows: Vec<ProfileRow>,
}

/// The time of one scenario before and after the changes.
pub struct ProfileRow {
    pub before: Cell,
    /// None without a change.
    pub after: Option<Cell>,
}

impl ProfileRow {
    /// The predicted time, or today's without a change.
    pub fn shown(&self) -> &Cell {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Change of the time, in per cent of today's.
    pub fn percent(&self) -> Option<f64> {
        let (before, after) = (self.before.seconds(), self.after.as_ref()?.seconds());
        (before != 0.0).then(|| 100.0 * (after / before - 1.0))
    }
}

impl ProfileForecast {
    /// The changes, one after the other; fails where the profile lacks what one needs.
    pub fn new(today: Profile, changes: &[Change]) -> Result<ProfileForecast, MissingInput> {
        let changed = Change::apply_all(changes, &today)?;
        let rows = rows(&today, &changed, changes);
        Ok(ProfileForecast { today, changed, changes: changes.to_vec(), rows })
    }
}

fn rows(today: &Profile, changed: &Profile, changes: &[Change]) -> Vec<ProfileRow> {
    let before = table(today);
    if changes.is_empty() {
        return before.into_iter().map(|before| ProfileRow { before, after: None }).collect();
    }
    // A change of the cache is compared with today's cache, which is the first.
    let is_cache = changes.iter().any(|change| change.cache_option().is_some());
    let rows = table(changed).into_iter().filter_map(|after| {
        let option = if is_cache { CacheOption::Smb21 } else { after.option };
        let before =
            before.iter().find(|one| one.scenario == after.scenario && one.option == option)?;
        Some(ProfileRow { before: before.clone(), after: Some(after) })
    });
    rows.collect()
}
