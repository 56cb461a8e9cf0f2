//! A running mean with its standard error, in constant memory.

/// A mean and its scatter (B. P. Welford 1962).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    pub(crate) n: u64,
    mean: f64,
    squares: f64,
}

impl Mean {
    pub(crate) fn add(&mut self, value: f64) {
        self.n += 1;
        let before = value - self.mean;
        self.mean += before / self.n as f64;
        self.squares += before * (value - self.mean);
    }

    /// Adds the same value `n` times.
    pub(crate) fn add_many(&mut self, value: f64, n: u64) {
        self.merge(&Mean { n, mean: value, squares: 0.0 });
    }

    /// Adds the values of `other` (T. F. Chan, G. H. Golub, R. J. LeVeque 1979).
    pub(crate) fn merge(&mut self, other: &Mean) {
        let n = (self.n + other.n).max(1) as f64;
        let apart = other.mean - self.mean;
        self.squares += other.squares + apart * apart * self.n as f64 * other.n as f64 / n;
        self.mean += apart * other.n as f64 / n;
        self.n += other.n;
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn deviation(&self) -> f64 {
        (self.squares / (self.n.max(2) - 1) as f64).sqrt()
    }

    /// Standard error of the mean.
    pub(crate) fn error(&self) -> f64 {
        self.deviation() / (self.n.max(1) as f64).sqrt()
    }
}
