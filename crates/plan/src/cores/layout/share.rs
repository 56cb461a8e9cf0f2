//! How adapters share the cores of one region.
//!
//! Owns the arithmetic: how many cores each adapter gets, and which. Does not own what an adapter or a region is.
//!
//! Max-min fairness with weights (Bertsekas and Gallager, "Data Networks", section 6.5.2) in whole cores.

use super::{Core, CpuId, RPS_BELOW_QUEUES, RPS_CORES_MAX};

/// What an adapter could use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// Link speed, or 1 for all.
    pub(super) weight: u128,
    /// At least 1.
    pub(super) queues_max: u32,
    pub(super) table_entries: u32,
}

/// What it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) cores: u32,
    /// Before the queues without a gain were left out.
    pub(super) before_rounding: u32,
    /// If its hardware queues, but not those of the other adapters, had no limit.
    pub(super) without_limit: u32,
}

/// The number of cores for each adapter: one each (there may be more adapters than cores), then by weight.
pub(super) fn shares(wishes: &[Wish], cores: u32) -> Vec<Share> {
    let mut caps: Vec<u32> = wishes.iter().map(|wish| wish.queues_max).collect();
    let before = fill(wishes, &caps, cores);
    let mut counts = before.clone();
    // A cap falls in each round but the last.
    loop {
        let mut is_changed = false;
        for ((cap, count), wish) in caps.iter_mut().zip(&counts).zip(wishes) {
            let fewest = fewest(wish.table_entries, *count);
            if fewest < *count {
                *cap = fewest;
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
        counts = fill(wishes, &caps, cores);
    }
    let mut shares = Vec::new();
    for (index, (&cores_of, &before_rounding)) in counts.iter().zip(&before).enumerate() {
        let mut unlimited: Vec<u32> = wishes.iter().map(|wish| wish.queues_max).collect();
        if let Some(cap) = unlimited.get_mut(index) {
            *cap = u32::MAX;
        }
        let without_limit = fill(wishes, &unlimited, cores).get(index).copied().unwrap_or(cores_of);
        shares.push(Share { cores: cores_of, before_rounding, without_limit });
    }
    shares
}

/// Takes one core from the adapter that has the first ones, among which CPU 0 is, if it has more than one.
pub(super) fn one_less(shares: &mut [Share], wishes: &[Wish]) {
    if let (Some(share), Some(wish)) = (shares.first_mut(), wishes.first())
        && share.cores > 1
    {
        share.cores = fewest(wish.table_entries, share.cores - 1);
        share.before_rounding = share.cores;
    }
}

/// The smallest number of queues that has the same largest share of a table as `queues`.
pub(super) fn fewest(entries: u32, queues: u32) -> u32 {
    let largest = entries.div_ceil(queues.max(1));
    if largest == 0 { queues } else { entries.div_ceil(largest).min(queues) }
}

/// The largest share of the table that a queue has, in percent.
pub(super) fn percent_max(entries: u32, queues: u32) -> f64 {
    if entries == 0 {
        100.0
    } else {
        100.0 * f64::from(entries.div_ceil(queues.max(1))) / f64::from(entries)
    }
}

/// Consecutive cores for each adapter in turn. The core with CPU 0, always the first, is left out if one is left over.
pub(super) fn in_rows(shares: &[Share], cores: &[Core]) -> Vec<Vec<Core>> {
    let needed: usize = shares.iter().map(|share| share.cores as usize).sum();
    let skip = usize::from(needed < cores.len() && cores.first().is_some_and(|core| core.has_cpu0));
    let mut rest = cores.iter().skip(skip).copied();
    shares.iter().map(|share| rest.by_ref().take(share.cores as usize).collect()).collect()
}

/// One core for each of more adapters than cores: the fastest first, each time the core with the least speed on it.
pub(super) fn crowded(wishes: &[Wish], cores: &[Core]) -> Vec<Vec<Core>> {
    let mut order: Vec<(usize, u128)> = wishes.iter().map(|wish| wish.weight).enumerate().collect();
    order.sort_by_key(|&(index, weight)| (std::cmp::Reverse(weight), index));
    let mut loads: Vec<(u128, Core)> = cores.iter().map(|&core| (0, core)).collect();
    let mut taken = vec![Vec::new(); wishes.len()];
    for (index, weight) in order {
        if let (Some((load, core)), Some(of_card)) =
            (loads.iter_mut().min_by_key(|(load, _)| *load), taken.get_mut(index))
        {
            *load += weight;
            of_card.push(*core);
        }
    }
    taken
}

/// Cores of RPS from those that are left over, for adapters with few queues.
pub(super) fn steering(wishes: &[Wish], free: &[CpuId]) -> Vec<Vec<CpuId>> {
    let mut steering: Vec<Vec<CpuId>> = vec![Vec::new(); wishes.len()];
    for &cpu in free {
        let next = wishes
            .iter()
            .zip(&mut steering)
            .filter(|(wish, cpus)| {
                let cores =
                    wish.queues_max.saturating_add(u32::try_from(cpus.len()).unwrap_or(u32::MAX));
                wish.queues_max < RPS_BELOW_QUEUES && cores < RPS_CORES_MAX
            })
            .min_by(|(a, in_a), (b, in_b)| {
                let load = |wish: &Wish, cpus: &Vec<CpuId>| {
                    u128::from(wish.queues_max) + cpus.len() as u128
                };
                (load(a, in_a) * b.weight).cmp(&(load(b, in_b) * a.weight))
            });
        match next {
            Some((_, cpus)) => cpus.push(cpu),
            None => break,
        }
    }
    steering
}

/// One core for each adapter, then one at a time to the adapter with the fewest for its weight below its cap.
fn fill(wishes: &[Wish], caps: &[u32], cores: u32) -> Vec<u32> {
    let mut counts = vec![1_u32; wishes.len()];
    let taken = u32::try_from(wishes.len()).unwrap_or(u32::MAX);
    for _ in taken..cores {
        let next = wishes
            .iter()
            .zip(caps)
            .zip(&mut counts)
            .filter(|((_, cap), count)| **count < **cap)
            .min_by(|((a, _), in_a), ((b, _), in_b)| {
                (u128::from(**in_a) * b.weight).cmp(&(u128::from(**in_b) * a.weight))
            });
        match next {
            Some((_, count)) => *count += 1,
            None => break,
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(weight: u128, queues_max: u32, table_entries: u32) -> Wish {
        Wish { weight, queues_max, table_entries }
    }

    fn cores(wishes: &[Wish], cores: u32) -> Vec<u32> {
        shares(wishes, cores).iter().map(|share| share.cores).collect()
    }

    #[test]
    fn cores_are_shared_by_speed_up_to_the_queues() {
        assert_eq!(cores(&[wish(1, 64, 128); 3], 6), [2, 2, 2]);
        assert_eq!(cores(&[wish(1, 64, 128); 4], 6), [2, 2, 1, 1]);
        assert_eq!(cores(&[wish(100, 64, 128), wish(10, 64, 128)], 8), [7, 1]);
        assert_eq!(cores(&[wish(100, 2, 128), wish(10, 64, 128)], 8), [2, 6]);
        assert_eq!(cores(&[wish(1, 8, 128); 3], 2), [1, 1, 1]);
    }

    #[test]
    fn queues_that_bring_nothing_are_left_out() {
        // Of 16 entries five queues have 4, 3, 3, 3 and 3, four have 4 each; six have at most 3.
        assert_eq!(cores(&[wish(1, 64, 16)], 5), [4]);
        assert_eq!(cores(&[wish(1, 64, 16)], 6), [6]);
        assert_eq!(cores(&[wish(1, 64, 16)], 7), [6]);
        assert_eq!(cores(&[wish(1, 64, 2)], 7), [2]);
        // What one leaves, the other gets.
        assert_eq!(cores(&[wish(1, 64, 2), wish(1, 64, 128)], 8), [2, 6]);
        assert!((percent_max(16, 6) - 18.75).abs() < 1e-9);
    }
}
