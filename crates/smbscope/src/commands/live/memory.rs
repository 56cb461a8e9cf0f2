//! How much memory this program holds, so that it takes no more than it may on a host that is drowning.

use std::time::{Duration, Instant};

use super::source::Source;

/// So often it is looked at.
const EVERY: Duration = Duration::from_millis(100);
/// Parts are asked to be completed early so often at most: many small ones cost more.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// A limit on this program's memory. From three quarters of it on, what there is should be written; beyond it
/// what comes is dropped, and counted, until what is written has made room.
pub struct Limit {
    bytes: u64,
    /// Of it, for what waits to be read.
    buffers: u64,
    looked: Instant,
    /// When it was last said that parts should be.
    written: Option<Instant>,
    /// Whether it was ever reached.
    pub was_reached: bool,
}

impl Limit {
    /// A limit of so many bytes, of which buffers that the kernel fills take some.
    pub fn new(bytes: u64, buffers: u64) -> Limit {
        Limit { bytes, buffers, looked: Instant::now(), written: None, was_reached: false }
    }

    /// Looks at it, now and then; whether what there is should be written now.
    pub fn watch(&mut self, source: &mut dyn Source) -> bool {
        if self.looked.elapsed() < EVERY {
            return false;
        }
        self.looked = Instant::now();
        let Some(held) = resident() else { return false };
        let (drops, writes) = self.judge(held, self.looked);
        source.shed(drops);
        writes
    }

    /// With so many bytes held besides the buffers: whether what comes is dropped, and whether what there
    /// is should be written now.
    fn judge(&mut self, held: u64, now: Instant) -> (bool, bool) {
        let held = held.saturating_add(self.buffers);
        let is_reached = held > self.bytes;
        self.was_reached |= is_reached;
        let is_time = self.written.is_none_or(|written| now - written >= WRITE_EVERY);
        let writes = held > self.bytes / 4 * 3 && is_time;
        if writes {
            self.written = Some(now);
        }
        (is_reached, writes)
    }
}

/// Lets memory that is free go back to the system also while nothing is asked for, as when what comes is
/// dropped: this program would never seem to hold less.
pub fn give_back() {
    // Without it that takes longer.
    #[cfg(target_os = "linux")]
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}

/// Resident bytes of this program that the system cannot drop and read again, as it can its code; without
/// mapped buffers. None where the system does not say.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name| {
        let kilobytes = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(kilobytes.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    };
    Some(bytes("RssAnon:")? + bytes("RssShmem:")?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_is_written_before_anything_is_dropped() {
        let mut limit = Limit::new(100, 20);
        let begin = Instant::now();
        let later = |milliseconds| begin + Duration::from_millis(milliseconds);
        assert_eq!(limit.judge(55, later(0)), (false, false));
        assert_eq!(limit.judge(56, later(100)), (false, true));
        // It is being written.
        assert_eq!(limit.judge(60, later(200)), (false, false));
        assert!(!limit.was_reached);
        assert_eq!(limit.judge(81, later(1_100)), (true, true));
        // What was written has made room.
        assert_eq!(limit.judge(25, later(1_200)), (false, false));
        assert!(limit.was_reached);
    }

    #[test]
    fn a_program_holds_what_it_has_written_to() {
        let before = resident().unwrap();
        let some = vec![1_u8; 64 << 20];
        let with = resident().unwrap();
        assert!(with >= before + (60 << 20), "{before} {with}");
        drop(some);
    }
}
