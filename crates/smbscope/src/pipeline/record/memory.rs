//! Limits the memory of this program, so that it does not harm a host that is already overloaded.

use std::time::{Duration, Instant};

use super::source::LiveSource;

/// How often memory is checked.
const EVERY: Duration = Duration::from_millis(100);
/// Parts are completed early at most this often: many small ones cost more.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// A limit on this program's memory. Above three quarters of it, rows should be written early; above the limit, new
/// data is dropped and counted until memory is free again.
pub struct MemoryLimit {
    bytes: u64,
    /// Bytes of it for data that waits to be read.
    buffers: u64,
    looked: Instant,
    /// When parts were last completed early.
    written: Option<Instant>,
    /// Whether the limit was ever reached.
    pub was_reached: bool,
}

impl MemoryLimit {
    /// A limit of `bytes`, which includes `buffers` that the kernel fills.
    pub fn new(bytes: u64, buffers: u64) -> MemoryLimit {
        MemoryLimit { bytes, buffers, looked: Instant::now(), written: None, was_reached: false }
    }

    /// The same limit, which includes further `buffers`.
    #[cfg(feature = "probe")]
    pub fn with(self, buffers: u64) -> MemoryLimit {
        MemoryLimit { buffers: self.buffers.saturating_add(buffers), ..self }
    }

    /// Checks memory now and then. Returns whether rows should be written now.
    pub fn watch(&mut self, source: &mut dyn LiveSource) -> bool {
        if self.looked.elapsed() < EVERY {
            return false;
        }
        self.looked = Instant::now();
        let Some(held) = resident() else { return false };
        let (drops, writes) = self.judge(held, self.looked);
        source.set_dropping(drops);
        writes
    }

    /// Decides, from the bytes held in addition to the buffers, whether new data is dropped, and whether rows
    /// should be written now.
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

/// Makes the allocator return free memory to the system in the background. Otherwise resident memory would not
/// shrink while data is dropped, because nothing is allocated then.
pub fn return_free_memory() {
    // If it fails, memory is returned later.
    #[cfg(target_os = "linux")]
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}

/// Resident bytes of this program that the system cannot discard and read again, as it can code. Mapped buffers
/// do not count. `None` where the system does not report it.
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
    fn rows_are_written_early_before_data_is_dropped() {
        let mut limit = MemoryLimit::new(100, 20);
        let begin = Instant::now();
        let later = |milliseconds| begin + Duration::from_millis(milliseconds);
        assert_eq!(limit.judge(55, later(0)), (false, false));
        assert_eq!(limit.judge(56, later(100)), (false, true));
        // It is being written.
        assert_eq!(limit.judge(60, later(200)), (false, false));
        assert!(!limit.was_reached);
        assert_eq!(limit.judge(81, later(1_100)), (true, true));
        // Writing freed memory.
        assert_eq!(limit.judge(25, later(1_200)), (false, false));
        assert!(limit.was_reached);
    }

    #[test]
    fn written_memory_is_resident() {
        let before = resident().unwrap();
        let some = vec![1_u8; 64 << 20];
        let with = resident().unwrap();
        // Other tests free some meanwhile.
        assert!(with >= before + (32 << 20), "{before} {with}");
        drop(some);
    }
}
