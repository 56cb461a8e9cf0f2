//! How analyses read the operations table: columns of a batch, and what single values mean. The
//! lowest floor of this crate: it uses no other module of it.

pub(crate) mod application;
pub(crate) mod bins;
pub(crate) mod busy_time;
pub(crate) mod columns;
pub(crate) mod create_intent;
pub(crate) mod status_class;

/// Whether a share, by its name, has named pipes: what is written to it reaches no file.
pub(crate) fn has_pipes(share: &str) -> bool {
    let name = share.rsplit(['\\', '/']).next().unwrap_or_default();
    name.eq_ignore_ascii_case("IPC$")
}
