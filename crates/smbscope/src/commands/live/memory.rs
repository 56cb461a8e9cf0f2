//! How much memory this program has, so that it takes no more than it may on a host that is drowning.

use std::time::{Duration, Instant};

use super::source::Source;

/// So often it is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// A limit on this program's memory. Beyond it what comes is dropped, and counted, until what is
/// written has made room.
pub struct Limit {
    bytes: u64,
    looked: Instant,
    /// Whether it was ever reached.
    pub was_reached: bool,
}

impl Limit {
    /// A limit of so many resident bytes.
    pub fn new(bytes: u64) -> Limit {
        Limit { bytes, looked: Instant::now(), was_reached: false }
    }

    /// Looks at it, now and then.
    pub fn watch(&mut self, source: &mut dyn Source) {
        if self.looked.elapsed() < EVERY {
            return;
        }
        self.looked = Instant::now();
        let is_reached = resident().is_some_and(|resident| resident > self.bytes);
        self.was_reached |= is_reached;
        source.shed(is_reached);
    }
}

/// Resident bytes of this program, the mapped ring buffers included; none where the system does not say.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kilobytes.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_some_memory() {
        let resident = resident().unwrap();
        assert!((1 << 20..1 << 40).contains(&resident), "{resident}");
    }
}
