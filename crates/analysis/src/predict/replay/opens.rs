//! What opens are used for, which their Create does not tell: learnt by a first replay, and asked by a
//! second one that meets the same Creates in the same order.

use super::Map;
use super::role::Role;

/// Opens that are followed at once.
const OPEN_MAX: usize = 1 << 20;

/// Two bits for each Create, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opens(Vec<u8>);

/// What one is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use(u8);

impl Use {
    const LISTED: u8 = 1;
    const OTHER: u8 = 2;

    /// It is opened and closed, nothing else.
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// It is listed or watched: a directory.
    pub(super) fn is_listed(self) -> bool {
        self.0 & Self::LISTED != 0
    }
}

impl Opens {
    /// Of the Create of that place.
    pub(super) fn get(&self, place: usize) -> Use {
        Use(self.0.get(place).copied().unwrap_or(Use::OTHER))
    }
}

/// Learns.
#[derive(Default)]
pub(super) struct Learning {
    opens: Opens,
    under_way: Map<(u32, u64), usize>,
}

impl Learning {
    /// An operation ended.
    pub(super) fn add(&mut self, role: Role, handle: Option<(u32, u64)>) {
        if role == Role::Create {
            if self.under_way.len() >= OPEN_MAX {
                // Their uses so far count.
                self.under_way.clear();
            }
            if let Some(handle) = handle {
                self.under_way.insert(handle, self.opens.0.len());
            }
            self.opens.0.push(0);
            return;
        }
        let Some(handle) = handle else { return };
        if role == Role::Close {
            self.under_way.remove(&handle);
        } else if let Some(place) = self.under_way.get(&handle)
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
