//! Wakes tasks to the microsecond.
//!
//! tokio's timers count whole milliseconds: everything due within one starts together at its end. Users
//! of a busy schedule would come in bursts, and a short delay would become a long one. Here one kernel
//! timer (timerfd_create(2)) is set to the earliest due time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The alarms that tasks of one runtime wait for.
#[derive(Debug)]
pub(super) struct Alarms {
    timer: AsyncFd<Timer>,
    waiting: Mutex<BinaryHeap<Reverse<Alarm>>>,
}

#[derive(Debug)]
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[derive(Debug)]
struct Alarm {
    due: Instant,
    bell: Arc<Notify>,
}

impl Alarms {
    /// Alarms of the current runtime, for as long as it lives.
    pub(super) fn new() -> io::Result<Arc<Alarms>> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        // Deprecated for types whose descriptor may be closed or replaced; this one owns its descriptor.
        #[expect(deprecated)]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        let alarms = Arc::new(Alarms { timer, waiting: Mutex::default() });
        tokio::spawn({
            let alarms = alarms.clone();
            async move {
                while let Ok(mut ready) = alarms.timer.readable().await {
                    // Cleared before the timer is set again, so that its next expiry is not lost.
                    ready.clear_ready();
                    alarms.ring();
                }
            }
        });
        Ok(alarms)
    }

    /// Waits for an instant. An alarm whose waiter is gone is kept until it is due.
    pub(super) async fn wait(&self, due: Instant) {
        if due <= Instant::now() {
            return;
        }
        let bell = Arc::new(Notify::new());
        {
            let mut waiting = self.waiting();
            let is_first = waiting.peek().is_none_or(|Reverse(first)| due < first.due);
            waiting.push(Reverse(Alarm { due, bell: bell.clone() }));
            if is_first {
                self.set(&mut waiting);
            }
        }
        bell.notified().await;
        if due > Instant::now() {
            tokio::time::sleep_until(due).await;
        }
    }

    /// Wakes all tasks whose time has come.
    fn ring(&self) {
        let mut waiting = self.waiting();
        let now = Instant::now();
        while let Some(first) = waiting.peek_mut().filter(|first| first.0.due <= now) {
            std::collections::binary_heap::PeekMut::pop(first).0.bell.notify_one();
        }
        self.set(&mut waiting);
    }

    /// Sets the timer to the earliest alarm; if the kernel refuses, all tasks wait with tokio's timers.
    fn set(&self, waiting: &mut BinaryHeap<Reverse<Alarm>>) {
        let Some(Reverse(first)) = waiting.peek() else { return };
        // A time of zero would disarm it.
        let after = first.due.saturating_duration_since(Instant::now());
        let after = TimeSpec::from_duration(after.max(Duration::from_nanos(1)));
        let timer = &self.timer.get_ref().0;
        if timer.set(Expiration::OneShot(after), TimerSetTimeFlags::empty()).is_err() {
            waiting.drain().for_each(|Reverse(alarm)| alarm.bell.notify_one());
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Alarm>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Alarm) -> bool {
        self.due == other.due
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Alarm) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Alarm) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}
