//! The measured windows of load runs: ramp, warm-up and the end of a step are the generator's, not the server's.

use smbscope_tables::tables::Step;

/// Most windows that are known.
const WINDOWS_MAX: usize = 4_096;

/// Measured windows by recording.
#[derive(Default)]
pub(super) struct Measured {
    /// Recording, begin and end.
    windows: Vec<(u32, i64, i64)>,
    /// Whether the last operation began outside of them.
    is_outside: bool,
}

impl Measured {
    pub(super) fn add(&mut self, recording: u32, row: &Step) {
        if self.windows.len() < WINDOWS_MAX {
            self.windows.push((recording, row.start, row.end));
        }
    }

    /// Whether an operation began outside of the windows of its recording, if that has any. A later member of a compound
    /// has no time of its own.
    pub(super) fn is_outside(&mut self, recording: u32, start: Option<i64>) -> bool {
        if let Some(start) = start {
            let mut windows = self.windows.iter().filter(|(of, ..)| *of == recording).peekable();
            self.is_outside = windows.peek().is_some()
                && !windows.any(|(_, begin, end)| (*begin..*end).contains(&start));
        }
        self.is_outside
    }
}
