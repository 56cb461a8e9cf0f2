//! Values as people read them: numbers, times, and what a field is called. The lowest floor: nothing here knows tables,
//! charts or answers.

pub(crate) mod clock;
pub mod fields;
pub mod format;
pub(crate) mod ticks;

pub use clock::Clock;
pub(crate) use fields::{Closed, Rows, all, kinds_of, show, table, values_of};
pub use fields::{Field, Fields, Format, Object, Presence};
