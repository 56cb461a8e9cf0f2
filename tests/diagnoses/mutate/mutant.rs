//! Which condition is decided as if it were removed: SMBSCOPE_MUTANT=ID. SMBSCOPE_MUTANTS_REACHED=FILE appends the ID of
//! each condition whose removal would have changed something.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{LazyLock, Mutex};

static ACTIVE: LazyLock<u32> = LazyLock::new(|| {
    let id = std::env::var("SMBSCOPE_MUTANT").ok();
    id.and_then(|id| id.parse().ok()).unwrap_or(0)
});
static FILE: LazyLock<Option<std::ffi::OsString>> =
    LazyLock::new(|| std::env::var_os("SMBSCOPE_MUTANTS_REACHED"));
static REACHED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// The condition, or `forced` if it is the mutant that is active.
pub(crate) fn is(id: u32, forced: bool, condition: bool) -> bool {
    if condition == forced {
        return condition;
    }
    if let Some(file) = &*FILE
        && REACHED.lock().is_ok_and(|mut reached| reached.insert(id))
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(file)
    {
        let _ = writeln!(file, "{id}");
    }
    if *ACTIVE == id { forced } else { condition }
}
