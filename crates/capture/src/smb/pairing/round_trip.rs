//! Round trips on one side of the capture point.

/// Servers that wait for something to acknowledge with wait 40 ms or more.
const DELAYED_NS_MIN: i64 = 30_000_000;

/// Minimum round trip on one side of the capture point.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    /// The three least samples, ascending; `samples` says how many there are.
    least: [i64; 3],
    /// Samples, handshake included.
    pub samples: u64,
    /// From the handshake.
    pub handshake: Option<i64>,
    /// The least from data.
    pub data: Option<i64>,
    /// What the round trip does not exceed, as replies show.
    pub bound: Option<i64>,
}

impl RoundTrip {
    /// Takes a sample of the handshake.
    pub fn add_handshake(&mut self, sample: i64) {
        if sample >= 0 {
            self.handshake = Some(sample);
            self.add(sample);
        }
    }

    /// Takes a sample of data and its acknowledgement.
    #[inline]
    pub fn add_data(&mut self, sample: i64) {
        if sample >= 0 {
            self.data = Some(self.data.map_or(sample, |least| least.min(sample)));
            self.add(sample);
        }
    }

    /// Takes the time until an acknowledgement that came with a reply, for which it may have
    /// waited: the round trip is not longer.
    #[inline]
    pub fn add_bound(&mut self, bound: i64) {
        self.bound = Some(self.bound.map_or(bound, |least| least.min(bound)));
    }

    #[inline]
    fn add(&mut self, sample: i64) {
        let [a, b, c] = self.least;
        if self.samples > 2 && sample >= c {
            self.samples += 1;
            return;
        }
        self.least = match self.samples {
            0 => [sample, 0, 0],
            1 => [a.min(sample), a.max(sample), 0],
            _ if sample < a => [sample, a, b],
            _ if sample < b => [a, sample, b],
            2 => [a, b, sample],
            _ => [a, b, sample],
        };
        self.samples += 1;
    }

    /// The minimum and its uncertainty: the distance to the third smallest sample. With fewer than
    /// three samples it is half the minimum. Without a handshake sample, with few samples or long
    /// ones, it is all of the minimum: the acknowledgements may be delayed. None without a sample,
    /// however many bounds there are.
    #[inline]
    pub fn estimate(&self) -> Option<(i64, i64)> {
        let least = self.bound.map_or(self.least[0], |bound| bound.min(self.least[0]));
        match self.samples {
            0 => None,
            1 | 2 if self.handshake.is_none() => Some((least, least)),
            _ if self.handshake.is_none() && least >= DELAYED_NS_MIN => Some((least, least)),
            1 | 2 => Some((least, least / 2)),
            _ => Some((least, self.least[2] - least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_the_least_with_the_third_least_as_its_error() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.estimate(), None);
        trip.add_handshake(100);
        assert_eq!(trip.estimate(), Some((100, 50)));
        for sample in [300, 120, 90, 400, 95] {
            trip.add_data(sample);
        }
        assert_eq!(trip.estimate(), Some((90, 10)));
        assert_eq!((trip.handshake, trip.data, trip.samples), (Some(100), Some(90), 6));
    }

    #[test]
    fn a_bound_lowers_the_round_trip_and_is_no_sample() {
        let mut trip = RoundTrip::default();
        trip.add_bound(70);
        trip.add_bound(80);
        assert_eq!((trip.estimate(), trip.bound), (None, Some(70)));
        trip.add_handshake(100);
        assert_eq!(trip.estimate(), Some((70, 35)));
        trip.add_bound(500);
        assert_eq!((trip.estimate(), trip.samples), (Some((70, 35)), 1));
    }

    #[test]
    fn without_a_handshake_a_delayed_acknowledgement_looks_like_distance() {
        let of = |sample: i64| {
            let mut trip = RoundTrip::default();
            (0..4).for_each(|more| trip.add_data(sample + more));
            trip
        };
        assert_eq!(of(40_000_000).estimate(), Some((40_000_000, 40_000_000)));
        assert_eq!(of(5_000_000).estimate(), Some((5_000_000, 2)));
        let mut trip = of(40_000_000);
        trip.add_handshake(40_000_005);
        assert_eq!(trip.estimate(), Some((40_000_000, 2)));
    }
}
