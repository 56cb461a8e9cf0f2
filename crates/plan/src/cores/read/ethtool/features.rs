//! `ethtool -k` and `--show-priv-flags`: which features are on.
//!
//! `netdev_features_strings`, Linux `net/ethtool/common.c`; names of private flags are the driver's.

use serde::{Deserialize, Serialize};

use super::{device, each_value};
use crate::input::lines::Lines;

/// Names of features and private flags are bounded by the driver; this is far above.
const FEATURES_MAX: usize = 1024;

/// Features of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    pub device: Option<String>,
    /// Name and whether it is on.
    pub values: Vec<(String, bool)>,
    pub is_private: bool,
}

impl Features {
    pub fn get(&self, name: &str) -> Option<bool> {
        self.values.iter().find(|(other, _)| other == name).map(|(_, is_on)| *is_on)
    }
}

pub(super) fn read(lines: &mut Lines<'_>) -> Features {
    let mut features = Features { device: device(lines), ..Features::default() };
    each_value(lines, |_, name, value| {
        let is_on = match value.split_whitespace().next() {
            Some("on") => true,
            Some("off") => false,
            _ => return false,
        };
        if features.values.len() < FEATURES_MAX {
            features.values.push((name.to_owned(), is_on));
        }
        features.values.len() < FEATURES_MAX
    });
    features
}

pub(super) fn private_flags(lines: &mut Lines<'_>) -> Features {
    Features { is_private: true, ..read(lines) }
}
