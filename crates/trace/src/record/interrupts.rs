//! Counters of interrupts: /proc/interrupts, /proc/softirqs and /proc/stat (proc(5)).

/// One line of /proc/interrupts or /proc/softirqs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// Number of an irq, or a name such as `LOC` and `NET_RX`.
    pub label: &'a str,
    /// How often, for each CPU of the heading.
    pub counts: Vec<u64>,
    /// Controller, trigger and handlers.
    pub rest: &'a str,
}

/// The CPUs of the heading, and the lines.
pub fn read(text: &str) -> (Vec<u32>, Vec<Line<'_>>) {
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cpus: Vec<u32> = heading.filter_map(|cpu| cpu.strip_prefix("CPU")?.parse().ok()).collect();
    let parse = |line| parse(line, cpus.len());
    let lines = lines.filter_map(parse).collect();
    (cpus, lines)
}

fn parse(line: &str, cpus: usize) -> Option<Line<'_>> {
    let (label, mut rest) = line.split_once(':')?;
    let mut counts = Vec::new();
    while counts.len() < cpus {
        let trimmed = rest.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let Some((Ok(count), after)) =
            trimmed.split_at_checked(end).map(|(word, after)| (word.parse(), after))
        else {
            break;
        };
        counts.push(count);
        rest = after;
    }
    Some(Line { label: label.trim(), counts, rest: rest.trim() })
}

impl<'a> Line<'a> {
    /// The irq's number.
    pub fn irq(&self) -> Option<u32> {
        self.label.parse().ok()
    }

    /// Names of its handlers, the last words: controllers have two words before them on x86
    /// (`PCI-MSIX-0000:00:01.0 0-edge`), three on arm64 (`GICv3 27 Level`).
    pub fn handlers(&self) -> Option<&'a str> {
        let is_trigger = |word: &str| {
            let word = word.to_ascii_lowercase();
            ["edge", "level", "fasteoi"].iter().any(|trigger| word.ends_with(trigger))
        };
        let mut rest = self.rest;
        for _ in 0..3 {
            let (word, after) = rest.split_once(char::is_whitespace)?;
            rest = after.trim_start();
            if is_trigger(word) {
                return Some(rest).filter(|rest| !rest.is_empty());
            }
        }
        None
    }
}

/// Ticks of a CPU in interrupts and softirqs since the machine started, for each CPU of
/// /proc/stat: fields 6 and 7 of `cpuN`.
pub fn ticks(stat: &str) -> Vec<(u32, u64)> {
    let of = |line: &str| -> Option<(u32, u64)> {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let irq: u64 = words.nth(5)?.parse().ok()?;
        let softirq: u64 = words.next()?.parse().ok()?;
        Some((cpu, irq.saturating_add(softirq)))
    };
    stat.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_count_for_each_processor() {
        let text = "           CPU0       CPU2
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 41:      18933          7  PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx, other
LOC:   10218665    9350379   Local timer interrupts
 11:         5          6     GICv3  27 Level     arch_timer
ERR:          0
";
        let (cpus, lines) = read(text);
        assert_eq!(cpus, [0, 2]);
        assert_eq!((lines[1].irq(), &*lines[1].counts), (Some(41), &[18933, 7][..]));
        let handlers: Vec<_> = lines.iter().map(Line::handlers).collect();
        let wanted = [Some("ACPI:Ged"), Some("virtio3-rx, other"), None, Some("arch_timer"), None];
        assert_eq!(handlers, wanted);
        assert_eq!((lines[4].label, &*lines[4].counts), ("ERR", &[0][..]));
        assert_eq!(read(""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn ticks_are_those_of_interrupts_and_softirqs() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        assert_eq!(ticks(stat), [(1, 13)]);
    }
}
