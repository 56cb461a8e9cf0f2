//! Random numbers that follow from names: (seed, user, purpose, number).
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), chosen
//! because it is eight lines that anyone can write in another language to get the same files. Never
//! change it: a file set made by one version must be the same in the next. Not for secrets.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Derives a key from `key` and `value`; both may use all 64 bits.
#[inline]
pub fn mix(key: u64, value: u64) -> u64 {
    finish(finish(key.wrapping_add(GAMMA)) ^ value.wrapping_mul(GAMMA))
}

#[inline]
fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of numbers that starts from a key.
#[derive(Clone, Copy, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream of a key.
    #[inline]
    pub fn new(key: u64) -> Stream {
        Stream(key)
    }

    /// The next number, all 64 bits of it.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        finish(self.0)
    }

    /// The next number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The next number below `count`; 0 for a count of 0.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference outputs of SplitMix64 for the seed 1234567.
    #[test]
    fn is_splitmix64() {
        let mut stream = Stream::new(1_234_567);
        assert_eq!(stream.bits(), 6_457_827_717_110_365_317);
        assert_eq!(stream.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut stream = Stream::new(mix(7, 9));
        let mut counts = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            counts[stream.below(10) as usize] += 1;
            sum += stream.unit();
        }
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert!((sum / 100_000.0 - 0.5).abs() < 0.005);
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn neighbouring_names_share_nothing() {
        let differing = |a: u64, b: u64| (a ^ b).count_ones();
        for n in 0..64 {
            assert!(differing(mix(1, n), mix(1, n + 1)) > 10);
            assert!(differing(mix(n, 1), mix(n + 1, 1)) > 10);
        }
        assert_ne!(mix(1, 2), mix(2, 1));
    }
}
