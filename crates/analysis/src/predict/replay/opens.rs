//! What opens are used for, which their Create does not show: learnt by a first replay, and used by a
//! second one that has the same Creates in the same order.

use super::Map;
use super::role::Role;

/// Most opens that are followed at the same time.
const OPEN_MAX: usize = 1 << 20;

/// Two bits for each Create, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opens(Vec<u8>);

/// What an open is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use(u8);

impl Use {
    const LISTED: u8 = 1;
    const OTHER: u8 = 2;

    /// It is opened and closed, and nothing else.
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// It is listed or watched: a directory.
    pub(super) fn is_listed(self) -> bool {
        self.0 & Self::LISTED != 0
    }
}

impl Opens {
    /// The use of the Create with this number.
    pub(super) fn get(&self, place: usize) -> Use {
        Use(self.0.get(place).copied().unwrap_or(Use::OTHER))
    }
}

/// Learns what opens are used for.
#[derive(Default)]
pub(super) struct OpenLearning {
    opens: Opens,
    in_flight: Map<(u32, u64), usize>,
}

impl OpenLearning {
    /// An operation ended.
    pub(super) fn add(&mut self, role: Role, handle: Option<(u32, u64)>) {
        if role == Role::Create {
            if self.in_flight.len() >= OPEN_MAX {
                // Their uses so far remain.
                self.in_flight.clear();
            }
            if let Some(handle) = handle {
                self.in_flight.insert(handle, self.opens.0.len());
            }
            self.opens.0.push(0);
            return;
        }
        let Some(handle) = handle else { return };
        if role == Role::Close {
            self.in_flight.remove(&handle);
        } else if let Some(place) = self.in_flight.get(&handle)
            && let Some(bits) = self.opens.0.get_mut(*place)
        {
            *bits |= match role {
                Role::List | Role::Watch => Use::LISTED,
                _ => 0,
            } | if role == Role::List { 0 } else { Use::OTHER };
        }
    }

    /// What was learnt.
    pub(super) fn finish(&mut self) -> Opens {
        std::mem::take(&mut self.opens)
    }
}
