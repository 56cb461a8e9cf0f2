//! The symbols of a running Linux kernel: text of `/proc/kallsyms` (kernel/kallsyms.c), lines of
//! `address type name`, with `[module]` at their ends for modules.

use super::functions::{Collector, Functions, Rank};
use std::io::{BufRead, Read as _};

/// Longest text that is read; that of a large kernel has 16 MiB. Longer lines are damaged.
const TEXT_BYTES_MAX: u64 = 256 << 20;
const LINE_BYTES_MAX: u64 = 4_096;
/// Module of functions that belong to none, as `perf` writes it.
pub const KERNEL: &str = "[kernel.kallsyms]";

/// Functions of the kernel and its modules by their addresses in memory.
#[derive(Debug, Default)]
pub struct KernelFunctions {
    /// Each name with that of its module behind a tab.
    all: Functions,
    /// Lines that could not be read.
    pub damaged: u64,
}

impl KernelFunctions {
    /// Reads the text.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn read(text: impl BufRead) -> std::io::Result<KernelFunctions> {
        let mut all = Collector::default();
        let mut damaged = 0;
        let mut text = text.take(TEXT_BYTES_MAX);
        let mut line = Vec::new();
        while text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? > 0 {
            match std::str::from_utf8(&line).ok().and_then(Line::parse) {
                // Without the right to see addresses all of them are 0.
                Some(Line { address: 0, .. }) => {}
                Some(Line { address, kind, name }) => {
                    let rank = match kind {
                        // Where code ends (vmlinux.lds).
                        _ if matches!(name, "_etext" | "_einittext") => Rank::End,
                        'T' => Rank::Global,
                        't' | 'W' | 'w' => Rank::Local,
                        _ => Rank::End,
                    };
                    all.add(address, rank, name);
                }
                None => damaged += 1,
            }
            line.clear();
        }
        Ok(KernelFunctions { all: all.finish(), damaged })
    }

    /// Whether there are none: the kernel hides addresses from this user (`kernel.kptr_restrict`).
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Name and module of the function that contains an address.
    pub fn find(&self, address: u64) -> Option<(&str, &str)> {
        let name = self.all.find(address)?;
        Some(name.split_once('\t').unwrap_or((name, KERNEL)))
    }

    /// Whether a symbol is at exactly this address.
    pub fn has_start(&self, address: u64) -> bool {
        self.all.has_start(address)
    }
}

/// Whether a text begins like `/proc/kallsyms`.
pub fn is_kallsyms(head: &str) -> bool {
    let mut lines = head.lines();
    // The last line can be cut off.
    lines.next().is_some_and(|line| Line::parse(line).is_some())
        && lines.take(8).filter(|line| !line.is_empty()).all(|line| {
            Line::parse(line).is_some() || !head.ends_with('\n') && head.ends_with(line)
        })
}

struct Line<'a> {
    address: u64,
    kind: char,
    /// The name, and after a tab that of the module in brackets.
    name: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Line<'a>> {
        let mut words = line.trim_end().splitn(3, ' ');
        let address = words.next()?;
        let mut kind = words.next()?.chars();
        let (kind, name) = (kind.next().filter(|_| kind.next().is_none())?, words.next()?);
        let is_name = !name.starts_with('\t') && !name.contains(' ');
        if !matches!(address.len(), 8 | 16) || !kind.is_ascii_alphabetic() || !is_name {
            return None;
        }
        Some(Line { address: u64::from_str_radix(address, 16).ok()?, kind, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000040 t local_one
ffffffff81e01000 T _etext
ffffffff81e01000 D data
ffffffffc0300000 t nf_hook\t[nf_tables]
";

    #[test]
    fn functions_are_named_and_data_ends_them() {
        assert!(is_kallsyms(TEXT) && is_kallsyms(&TEXT[..100]));
        let all = KernelFunctions::read(TEXT.as_bytes()).unwrap();
        assert_eq!((all.damaged, all.is_empty()), (0, false));
        let found = |address| all.find(address).unwrap_or_default();
        assert_eq!(found(0xffff_ffff_8100_0010), ("startup_64", KERNEL));
        assert_eq!(found(0xffff_ffff_8100_0041), ("local_one", KERNEL));
        assert_eq!(found(0xffff_ffff_c030_0010), ("nf_hook", "[nf_tables]"));
        assert_eq!(
            (all.find(0xffff_ffff_80ff_ffff), all.find(0xffff_ffff_81e0_1001)),
            (None, None)
        );
        assert!(all.has_start(0xffff_ffff_8100_0000) && !all.has_start(0xffff_ffff_8100_0001));
    }

    #[test]
    fn other_texts_and_hidden_addresses_have_no_functions() {
        assert!(!is_kallsyms("") && !is_kallsyms("# tracer: nop\n"));
        assert!(!is_kallsyms("<idle>-0 [000] 1.0: softirq_entry: vec=1\n"));
        let hidden = "0000000000000000 T _stext\n0000000000000000 t one\n";
        assert!(KernelFunctions::read(hidden.as_bytes()).unwrap().is_empty());
        let long = format!("\u{fe}\nnonsense\n{}\n", "x".repeat(LINE_BYTES_MAX as usize));
        assert_eq!(KernelFunctions::read(long.as_bytes()).unwrap().damaged, 4);
        let nameless = "ffffffffc0300000 t \t[module]\n";
        assert_eq!(KernelFunctions::read(nameless.as_bytes()).unwrap().damaged, 1);
    }
}
