//! Chains of calls below a sample of `perf script`: one line for each frame, the innermost first,
//! and an empty line at the end.

use crate::event::Frame;
use crate::names::Names;

/// A frame: `ADDRESS FUNCTION+0xOFFSET (MODULE)`.
pub fn frame(line: &str, names: &mut Names) -> Option<Frame> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let (function, module) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((function, module)) => (function, module),
        None => (rest, ""),
    };
    let function = match function.rsplit_once("+0x") {
        Some((function, _offset)) => function,
        None => function,
    };
    let mut known = |name: &str| match name {
        "[unknown]" => None,
        name => names.intern(name),
    };
    Some(Frame { address, function: known(function), module: known(module) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_address_function_and_module() {
        let mut names = Names::default();
        let line = "\t ffffffff810a2 net_rx_action+0x12 (/lib/modules/4.3/build/vm linux)";
        let read = frame(line, &mut names).unwrap();
        assert_eq!(read.address, 0xf_ffff_fff8_10a2);
        assert_eq!(read.function.as_deref(), Some("net_rx_action"));
        assert_eq!(read.module.as_deref(), Some("/lib/modules/4.3/build/vm linux"));
        let read = frame("    7f25980008f0 [unknown] ([unknown])", &mut names).unwrap();
        assert_eq!((read.function, read.module), (None, None));
        let read = frame(" 10 operator+ (a)", &mut names).unwrap();
        assert_eq!(read.function.as_deref(), Some("operator+"));
        assert_eq!(frame("no address", &mut names), None);
    }
}
