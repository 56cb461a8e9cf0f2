//! Sets of CPUs as Linux writes them.
//!
//! Owns lists (`0-3,8`) and masks (`ff,00000001`). `Documentation/core-api/irq/irq-affinity.rst`; `bitmap_parse` and
//! `bitmap_parselist` in the kernel's `lib/bitmap-str.c`.

/// The highest number of a CPU that a mask is made for; kernels are built for at most 8,192.
const NUMBER_MAX: u32 = 65_535;

/// A list of numbers and ranges.
pub(super) fn list(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    cpus.chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .filter_map(|run| match (run.first()?, run.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}-{last}")),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// A mask in hexadecimal, with a comma between groups of 32 bits.
pub(super) fn mask(cpus: &[u32]) -> String {
    let mut groups = vec![0_u32];
    for &cpu in cpus.iter().filter(|&&cpu| cpu <= NUMBER_MAX) {
        let group = (cpu / 32) as usize;
        if groups.len() <= group {
            groups.resize(group + 1, 0);
        }
        if let Some(bits) = groups.get_mut(group) {
            *bits |= 1 << (cpu % 32);
        }
    }
    let mut highest_first = groups.iter().rev();
    let mut text = highest_first.next().map(|bits| format!("{bits:x}")).unwrap_or_default();
    for bits in highest_first {
        text.push_str(&format!(",{bits:08x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_the_kernel_reads_them() {
        assert_eq!(list(&[8, 0, 1, 3, 2, 10, 9]), "0-3,8-10");
        assert_eq!(list(&[u32::MAX, 5]), "5,4294967295");
        assert_eq!(mask(&[]), "0");
        assert_eq!(mask(&[0, 4]), "11");
        assert_eq!(mask(&[33, 1]), "2,00000002");
        assert_eq!(mask(&[u32::MAX]), "0");
    }
}
