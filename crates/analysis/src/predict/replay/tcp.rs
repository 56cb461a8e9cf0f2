//! What TCP adds to the one round trip of a message: additional round trips while the congestion window
//! or the receive window is smaller than the message, the time of sending at the link's rate, and the cost
//! of lost segments.
//!
//! The window is that of Linux: ten segments at first (RFC 6928), doubled by each round trip that
//! used it up (RFC 5681, slow start), and halved for each retransmission timeout without sending
//! (RFC 2861). It also shrinks while small messages leave it unused; measured on a link of 200 ms, that is
//! too rare among file operations to matter. Congestion avoidance is included only as the mean window that
//! losses allow: without losses most messages of file sharing end before it begins.

/// Headers of a segment on Ethernet: 14 of Ethernet, 20 of IPv4, 32 of TCP with time stamps.
pub(super) const HEADERS_BYTES: f64 = 66.0;
/// Segments that may be sent before the first acknowledgement (RFC 6928).
const INITIAL: f64 = 10.0;
/// Least time beyond the round trip after which Linux considers a segment lost, ns.
const TIMEOUT_NS: i64 = 200_000_000;

/// Mean congestion window, in segments, if this share of segments is lost: Reno's (M. Mathis, J. Semke, J. Mahdavi
/// and T. Ott, CCR 27(3), 1997), or CUBIC's if that is larger (RFC 9438 sections 4.3 and 5.1).
pub fn window_of_losses(loss: f64, rtt_ns: i64) -> f64 {
    let reno = 1.22 / loss.sqrt();
    let cubic = 1.054 * (rtt_ns as f64 / 1e9 / loss).powf(0.75);
    reno.max(cubic)
}

/// One direction of the network path between client and server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Round trip without load, ns.
    pub rtt_ns: i64,
    /// Payload of a segment, bytes.
    pub segment_bytes: f64,
    /// Time that a full segment with its headers needs at the link's rate, ns; 0 without a limit.
    pub segment_ns: f64,
    /// The receiver's window, segments.
    pub window: f64,
    /// Share of segments that are lost.
    pub loss: f64,
}

/// What one side of a connection may send.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    window: f64,
    /// Segments that may be sent before the next acknowledgement, and how many of them were.
    round: f64,
    in_flight: f64,
    /// Segments of the previous round of the same message.
    before: f64,
    /// Segments in flight by which the window has not grown yet.
    to_grow: f64,
    /// When the round began, ns.
    round_at: i64,
    /// End of the last message, ns.
    sent_at: i64,
}

impl Default for Sender {
    fn default() -> Sender {
        Sender {
            window: INITIAL,
            round: INITIAL,
            in_flight: 0.0,
            before: 0.0,
            to_grow: 0.0,
            round_at: i64::MIN,
            sent_at: i64::MIN,
        }
    }
}

impl Sender {
    /// Sends a message that is ready at `at`, or more of the previous message; returns the time from then to its last
    /// segment, ns. Messages are sent one after the other, and messages that are ready within one round trip share
    /// what may be sent in it.
    pub fn send(&mut self, path: &Path, at: i64, bytes: u64, is_more: bool) -> i64 {
        let is_free = path.segment_ns == 0.0 && path.loss == 0.0;
        let is_behind = at < self.sent_at;
        if is_free && !is_more && bytes as f64 <= path.segment_bytes {
            if is_behind {
                return self.sent_at - at;
            }
            // A single segment is sent at once, whatever the window, and does not change it.
            if at >= self.round_at.saturating_add(path.rtt_ns) {
                self.rest(path, at);
                self.begin_round(path);
                self.round_at = at;
                (self.before, self.in_flight, self.to_grow) = (0.0, 1.0, 1.0);
                if self.window < 2.0 && self.window < path.window {
                    self.window += std::mem::take(&mut self.to_grow);
                }
            }
            self.sent_at = at;
            return 0;
        }
        let segments = (bytes as f64 / path.segment_bytes).ceil().max(1.0);
        if is_more {
            // It continues where the previous message ended, whenever that was.
            self.round_at = match self.sent_at {
                i64::MIN => at,
                sent_at => self.round_at.saturating_add(at.saturating_sub(sent_at)),
            };
        } else if !is_behind && at >= self.round_at.saturating_add(path.rtt_ns) {
            self.rest(path, at);
            self.begin_round(path);
            self.round_at = at;
            self.before = 0.0;
        }
        let begin = if is_more { at } else { at.max(self.sent_at) };
        // Since `begin`, ns.
        let mut round_ns = self.round_at.saturating_sub(begin) as f64;
        let mut left = segments;
        let mut ns = 0.0;
        loop {
            let sent = left.min(self.round - self.in_flight);
            left -= sent;
            ns += sent * path.segment_ns;
            self.in_flight += sent;
            // Linux lets the window grow by what is acknowledged while more than half of it is in
            // flight (tcp_is_cwnd_limited). Each acknowledgement of the round before lets two segments
            // go, so that the most are in flight when half of this round's are sent.
            self.to_grow += sent;
            let most = self.in_flight.max(self.before + self.in_flight / 2.0);
            if self.window < 2.0 * most && self.window < path.window {
                self.window += std::mem::take(&mut self.to_grow);
            }
            if left <= 0.0 {
                break;
            }
            let round_trip_ns = path.rtt_ns as f64 + path.segment_ns;
            ns = ns.max(round_ns + round_trip_ns);
            self.begin_round(path);
            if self.window >= path.window {
                // It no longer grows: all full rounds but the last take equally long.
                let alike = (left / self.round).ceil() - 1.0;
                ns += alike * round_trip_ns.max(self.round * path.segment_ns);
                left -= alike * self.round;
            }
            round_ns = ns;
        }
        self.round_at = begin.saturating_add(round_ns as i64);
        // The last segment is as long as what is left.
        let spare_bytes = (segments * path.segment_bytes - bytes as f64).max(0.0);
        let spare_ns = path.segment_ns * spare_bytes / (path.segment_bytes + HEADERS_BYTES);
        ns = (ns - spare_ns).max(0.0);
        if path.loss > 0.0 {
            ns += lost_ns(path, segments);
        }
        self.sent_at = begin.saturating_add(ns as i64);
        self.sent_at.saturating_sub(at)
    }

    /// End of the last message, ns; the least possible time before the first.
    pub fn sent_at(&self) -> i64 {
        self.sent_at
    }

    fn begin_round(&mut self, path: &Path) {
        self.before = self.in_flight;
        self.round = self.window.min(path.window).max(1.0);
        (self.in_flight, self.to_grow) = (0.0, 0.0);
    }

    /// Shrinks the window for the time since the last message.
    fn rest(&mut self, path: &Path, at: i64) {
        let timeout = path.rtt_ns.saturating_add(TIMEOUT_NS);
        if self.sent_at == i64::MIN {
            self.sent_at = at;
        }
        let mut idle = at.saturating_sub(self.sent_at);
        while idle > timeout && self.window > INITIAL {
            self.window = (self.window / 2.0).max(INITIAL);
            idle -= timeout;
        }
    }
}

/// Mean cost of losses for a message: three later segments reveal a lost one at once; for the last segments only
/// the timer does (RFC 8985: two round trips, or the timeout for a single segment).
fn lost_ns(path: &Path, segments: f64) -> f64 {
    let rtt = path.rtt_ns as f64;
    let detected = (segments - 3.0).max(0.0);
    let timed = segments - detected;
    let probe = if segments > 1.0 { 2.0 * rtt.max(1e6) } else { rtt + TIMEOUT_NS as f64 };
    path.loss * (detected * rtt + timed * (probe + rtt))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn path(rtt_ms: i64) -> Path {
        Path {
            rtt_ns: rtt_ms * MS,
            segment_bytes: 1448.0,
            segment_ns: 0.0,
            window: f64::INFINITY,
            loss: 0.0,
        }
    }

    #[test]
    fn a_block_of_64_kib_needs_three_round_trips_and_then_one() {
        // As two of three first reads on a link of 200 ms showed; the third needed two for the next
        // block as well (docs/measurements/predictions.md). 46 segments: 10, 20, 16.
        let mut sender = Sender::default();
        let mut at = 0;
        for more in [40 * MS, 0, 0] {
            assert_eq!(sender.send(&path(20), at, 65_536, false), more);
            at += more + 20 * MS;
        }
    }

    #[test]
    fn a_message_in_pieces_takes_as_long_as_a_whole_one() {
        let whole = Sender::default().send(&path(20), 0, 1_448 * 724, false);
        let mut sender = Sender::default();
        let pieces: i64 =
            (0..8).map(|piece| sender.send(&path(20), 0, 1_448 * 724 / 8, piece > 0)).sum();
        assert_eq!((whole, pieces), (6 * 20 * MS, 6 * 20 * MS));
    }

    #[test]
    fn messages_side_by_side_share_the_window() {
        // Eight blocks that are ready at once take as long as one message of all of them.
        let whole = Sender::default().send(&path(20), 0, 8 * 65_536, false);
        let mut sender = Sender::default();
        let ends: Vec<_> = (0..8).map(|_| sender.send(&path(20), 0, 65_536, false)).collect();
        assert_eq!((ends[0], ends[7]), (40 * MS, whole));
        assert!(ends.is_sorted());
        // The window is open for two of them then, and the third that is ready in this round waits for the next.
        let ends: Vec<_> = [0, 1, 2]
            .map(|at| sender.send(&Path { window: 92.0, ..path(20) }, 200 * MS + at, 65_536, false))
            .to_vec();
        assert_eq!(ends, [0, 0, 20 * MS - 2]);
        // A short message waits behind what is in transit.
        assert_eq!(sender.send(&path(20), 201 * MS, 100, false), 19 * MS);
    }

    #[test]
    fn small_messages_never_wait_and_never_open_the_window() {
        let mut sender = Sender::default();
        for at in 0..100 {
            assert_eq!(sender.send(&path(20), at * 20 * MS, 500, false), 0);
        }
        assert_eq!(sender.send(&path(20), 2_000 * MS, 65_536, false), 40 * MS);
    }

    #[test]
    fn a_rest_closes_the_window() {
        let mut sender = Sender::default();
        sender.send(&path(20), 0, 65_536, false);
        assert_eq!(sender.send(&path(20), 10_000 * MS, 65_536, false), 40 * MS);
    }

    #[test]
    fn a_small_window_of_the_receiver_is_a_round_trip_for_each_of_it() {
        let mut sender = Sender { window: 1000.0, ..Sender::default() };
        let path = Path { window: 10.0, ..path(100) };
        assert_eq!(sender.send(&path, 0, 14_480 * 5, false), 400 * MS);
    }

    #[test]
    fn the_rate_counts_where_it_is_slower_than_the_windows() {
        // 1448 bytes in 2 ms: ten segments keep the line busy for a round trip.
        let path = Path { segment_ns: 2e6, ..path(10) };
        let mut sender = Sender::default();
        assert_eq!(sender.send(&path, 0, 1448 * 50, false), 100 * MS);
        // A tenth of a segment, and its headers, need a tenth of its time.
        assert_eq!(Sender::default().send(&path, 0, 85, false), (2e6 * 151.0 / 1514.0) as i64);
    }

    #[test]
    fn losses_leave_a_window() {
        // 0.5 %, 20 ms: 17 segments in Reno's region; far away and seldom CUBIC has more than 122.
        assert!((window_of_losses(0.005, 20 * MS) - 17.25).abs() < 0.01);
        assert!((window_of_losses(0.0001, 200 * MS) - 315.0).abs() < 1.0);
    }

    #[test]
    fn losses_cost_more_the_farther_away() {
        let lossy = |rtt| Path { loss: 0.01, ..path(rtt) };
        let near = Sender::default().send(&lossy(1), 0, 65_536, false);
        let far = Sender::default().send(&lossy(100), 0, 65_536, false);
        assert!(near > 0 && far > 10 * near, "{near} {far}");
    }
}
