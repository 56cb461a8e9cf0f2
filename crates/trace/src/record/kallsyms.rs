//! Functions of the kernel and its modules by address: /proc/kallsyms.
//!
//! One text and one list of numbers, so that a hundred thousand functions need a few megabytes.

use std::io::{self, BufRead, Read};

/// Most functions; a kernel with all modules has some 200,000.
const FUNCTIONS_MAX: usize = 1 << 20;
/// Longer lines are skipped.
const LINE_BYTES_MAX: u64 = 4096;
/// Module of functions that belong to none.
const KERNEL: &str = "[kernel.kallsyms]";

/// Functions in the order of their addresses.
#[derive(Debug, Default)]
pub struct Functions {
    all: Vec<Function>,
    /// Names and modules, one after the other.
    text: String,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    address: u64,
    name: u32,
    name_bytes: u16,
    module_bytes: u16,
}

impl Functions {
    /// Reads lines `ADDRESS TYPE NAME [MODULE]`.
    pub fn read(mut input: impl BufRead) -> io::Result<Functions> {
        let mut functions = Functions::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = Read::by_ref(&mut input).take(LINE_BYTES_MAX);
            if limited.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if let Ok(line) = std::str::from_utf8(&line) {
                functions.line(line);
            }
        }
        functions.all.sort_by_key(|function| function.address);
        functions.all.shrink_to_fit();
        functions.text.shrink_to_fit();
        Ok(functions)
    }

    /// Whether there are none: the kernel hides them from this user (`kernel.kptr_restrict`).
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Name and module of the function that contains an address.
    pub fn find(&self, address: u64) -> Option<(&str, &str)> {
        let after = self.all.partition_point(|function| function.address <= address);
        let function = self.all.get(after.checked_sub(1)?)?;
        let name = function.name as usize;
        let module = name + usize::from(function.name_bytes);
        let end = module + usize::from(function.module_bytes);
        let module_name = self.text.get(module..end)?;
        let module_name = if module_name.is_empty() { KERNEL } else { module_name };
        Some((self.text.get(name..module)?, module_name))
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else { return };
        // Code only: local, global and weak.
        let is_code = matches!(kind, "t" | "T" | "w" | "W");
        if address == 0 || !is_code || self.all.len() >= FUNCTIONS_MAX {
            return;
        }
        let module = words.next().unwrap_or_default();
        let (Ok(at), Ok(name_bytes), Ok(module_bytes)) =
            (u32::try_from(self.text.len()), name.len().try_into(), module.len().try_into())
        else {
            return;
        };
        self.text.push_str(name);
        self.text.push_str(module);
        self.all.push(Function { address, name: at, name_bytes, module_bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let text = "\
ffffffff81000100 T net_rx_action
ffffffff81000000 T _stext
ffffffffc0000000 t virtnet_poll\t[virtio_net]
ffffffff81000200 D some_data
ffffffffc0001000 t bpf_prog_6deef7357e7b4530_softirq_exit\t[bpf]
not an address
";
        let functions = Functions::read(text.as_bytes()).unwrap();
        assert!(!functions.is_empty());
        let kernel = |name| Some((name, "[kernel.kallsyms]"));
        assert_eq!(functions.find(0xffff_ffff_8100_00ff), kernel("_stext"));
        assert_eq!(functions.find(0xffff_ffff_8100_0234), kernel("net_rx_action"));
        assert_eq!(functions.find(0xffff_ffff_80ff_ffff), None);
        let found = functions.find(0xffff_ffff_c000_0001);
        assert_eq!(found, Some(("virtnet_poll", "[virtio_net]")));
        let (name, module) = functions.find(u64::MAX).unwrap();
        assert!(name.ends_with("softirq_exit") && module == "[bpf]");
    }

    #[test]
    fn hidden_addresses_and_long_lines_are_no_functions() {
        let long = format!("{}\n", "x".repeat(3 * LINE_BYTES_MAX as usize));
        let text = format!("0000000000000000 T _stext\n{long}0000000000000000 T _end\n");
        assert!(Functions::read(text.as_bytes()).unwrap().is_empty());
    }
}
