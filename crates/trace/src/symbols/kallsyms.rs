//! The symbols of a running Linux kernel: text of `/proc/kallsyms` (kernel/kallsyms.c), lines of
//! `address type name`, with `[module]` at their ends for modules.

use super::functions::{Collector, Functions, Rank};
use std::io::BufRead;

/// Longest text that is read; that of a large kernel has 16 MiB.
const TEXT_BYTES_MAX: u64 = 256 << 20;

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
        if !matches!(address.len(), 8 | 16) || !kind.is_ascii_alphabetic() || name.contains(' ') {
            return None;
        }
        Some(Line { address: u64::from_str_radix(address, 16).ok()?, kind, name })
    }
}

/// The functions in the text, each with its module behind a tab, and how many lines could not be
/// read.
pub fn functions(text: impl BufRead) -> std::io::Result<(Functions, u64)> {
    let mut all = Collector::default();
    let mut damaged = 0;
    let mut text = text.take(TEXT_BYTES_MAX);
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line)? > 0 {
        match std::str::from_utf8(&line).ok().and_then(Line::parse) {
            // Without the right to see addresses all of them are 0.
            Some(Line { address: 0, .. }) => {}
            Some(Line { address, kind, name }) => {
                let rank = match kind {
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
    Ok((all.finish(), damaged))
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
        let (all, damaged) = functions(TEXT.as_bytes()).unwrap();
        assert_eq!(damaged, 0);
        assert_eq!(all.find(0xffff_ffff_8100_0010), Some("startup_64"));
        assert_eq!(all.find(0xffff_ffff_8100_0041), Some("local_one"));
        assert_eq!(all.find(0xffff_ffff_c030_0010), Some("nf_hook\t[nf_tables]"));
        assert_eq!(all.find(0xffff_ffff_80ff_ffff), None);
    }

    #[test]
    fn other_texts_and_hidden_addresses_have_no_functions() {
        assert!(!is_kallsyms("") && !is_kallsyms("# tracer: nop\n"));
        assert!(!is_kallsyms("<idle>-0 [000] 1.0: softirq_entry: vec=1\n"));
        let hidden = "0000000000000000 T _stext\n0000000000000000 t one\n";
        let (all, _) = functions(hidden.as_bytes()).unwrap();
        assert!(all.is_empty());
        assert_eq!(functions(&b"\xff\xfe\nnonsense\n"[..]).unwrap().1, 2);
    }
}
