//! How analyses read the operations table: columns of a batch, and what single values mean. The
//! lowest floor of this crate: it uses no other module of it.

pub(crate) mod application;
pub(crate) mod bins;
pub(crate) mod busy_time;
pub(crate) mod columns;
pub(crate) mod create_intent;
pub(crate) mod status_class;
