//! One line of a text trace: task, CPU, time, event and its fields.
//!
//! `trace` and `trace_pipe` (Documentation/trace/ftrace.rst) and `trace-cmd report` print
//! `COMM-PID (TGID) [CPU] FLAGS SECONDS: EVENT: FIELDS`, TGID and FLAGS being optional; `perf script`
//! prints `COMM PID/TID [CPU] SECONDS: PERIOD GROUP:EVENT: FIELDS`, TID and PERIOD being optional.

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line<'a> {
    /// Name of the thread.
    pub task: &'a str,
    pub process: Option<u32>,
    pub thread: Option<u32>,
    pub cpu: u32,
    pub time_ns: i64,
    /// Name of the event without its group; empty if the line has none (function tracer).
    pub event: &'a str,
    /// Period of a sample, in events of its counter.
    pub period: Option<u64>,
    pub fields: &'a str,
    /// Whether `perf script` printed it.
    pub is_perf: bool,
}

impl<'a> Line<'a> {
    /// Reads a line; `None` if it does not have this form.
    pub fn parse(line: &'a str) -> Option<Line<'a>> {
        // The name of a task can contain brackets: take the first ones that a time follows.
        let mut from = 0;
        loop {
            let open = from + line.get(from..)?.find('[')?;
            let close = open + line.get(open..)?.find(']')?;
            let cpu = line.get(open + 1..close)?;
            if let Some(cpu) = number(cpu)
                && let Some((time_ns, rest)) = time(line.get(close + 1..)?)
            {
                let Task { name: task, process, thread, is_perf } = task(line.get(..open)?);
                let (event, period, fields) = event(rest, is_perf);
                return Some(Line {
                    task,
                    process,
                    thread,
                    cpu,
                    time_ns,
                    event,
                    period,
                    fields,
                    is_perf,
                });
            }
            from = open + 1;
        }
    }

    /// The value of `NAME=VALUE`, up to the next blank.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        let value = after(self.fields, name)?;
        value.split_ascii_whitespace().next()
    }

    /// The number in `NAME=NUMBER`.
    pub fn number(&self, name: &str) -> Option<u32> {
        number(self.field(name)?)
    }

    /// The text after `NAME=`, up to `end` or the end of the line.
    pub fn text(&self, name: &str, end: &str) -> Option<&'a str> {
        let value = after(self.fields, name)?;
        Some(value.split(end).next().unwrap_or(value).trim())
    }
}

/// What follows `NAME=` at the beginning or after a blank or bracket.
fn after<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    let mut from = 0;
    loop {
        let at = from + fields.get(from..)?.find(name)?;
        let before = fields.get(..at)?.chars().next_back();
        let rest = fields.get(at + name.len()..)?;
        if before.is_none_or(|c| c == ' ' || c == '[')
            && let Some(value) = rest.strip_prefix('=')
        {
            return Some(value);
        }
        from = at + name.len();
    }
}

/// Digits as a number.
pub fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// What a line says before the CPU.
struct Task<'a> {
    name: &'a str,
    process: Option<u32>,
    thread: Option<u32>,
    /// Whether it is written as in `perf script`.
    is_perf: bool,
}

fn task(text: &str) -> Task<'_> {
    let mut text = text.trim();
    if let Some(inner) = text.strip_suffix(')')
        && let Some((before, _)) = inner.rsplit_once('(')
    {
        text = before.trim_end();
    }
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let name = text.strip_suffix(last).unwrap_or(text).trim();
    if let Some((process, thread)) = last.split_once('/')
        && let (Some(process), Some(thread)) = (number(process), number(thread))
    {
        return Task { name, process: Some(process), thread: Some(thread), is_perf: true };
    }
    if let Some(thread) = number(last).filter(|_| last.len() < text.len()) {
        return Task { name, process: None, thread: Some(thread), is_perf: true };
    }
    let (name, thread) = text.rsplit_once('-').unwrap_or((text, ""));
    Task { name, process: None, thread: number(thread), is_perf: false }
}

/// The time and what follows it. A word of flags can precede it.
fn time(text: &str) -> Option<(i64, &str)> {
    let text = text.strip_prefix([' ', '\t'])?.trim_start();
    let (first, rest) = text.split_once(':')?;
    let stamp = match first.split_once(char::is_whitespace) {
        Some((_flags, stamp)) => stamp.trim(),
        None => first,
    };
    Some((seconds(stamp)?, rest))
}

/// `SECONDS.FRACTION` in nanoseconds; a fraction has at most nine digits.
fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    let whole: i64 = whole.parse().ok()?;
    let fraction: i64 = fraction.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(fraction.checked_mul(scale)?)
}

/// Event, period and fields.
fn event(text: &str, is_perf: bool) -> (&str, Option<u64>, &str) {
    let text = text.trim();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (period, name, fields) = match first.parse::<u64>() {
        Ok(period) if is_perf => {
            let rest = rest.trim_start();
            let (name, fields) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (Some(period), name, fields)
        }
        _ => (None, first, rest),
    };
    let Some(name) = name.strip_suffix(':') else { return ("", period, text) };
    // `irq:softirq_entry` has a group; of `cycles:u` the event comes first.
    let name = match name.split_once(':') {
        Some((event, modifiers)) if modifiers.len() <= 4 => event,
        Some((_group, event)) => event,
        None => name,
    };
    (name, period, fields.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Line<'_> {
        Line::parse(line).unwrap()
    }

    #[test]
    fn the_same_event_is_read_in_each_form() {
        let forms = [
            "          <idle>-0     [002] d.s2.  5164.021873: softirq_entry: vec=3 [action=NET_RX]",
            "          <idle>-0     (-----) [002] d.s..  5164.021873: softirq_entry: vec=3 [action=NET_RX]",
            "          <idle>-0     [002]  5164.021873: softirq_entry:        vec=3 [action=NET_RX]",
            "swapper     0 [002]  5164.021873000:      irq:softirq_entry: vec=3 [action=NET_RX]",
            "swapper 0/0 [002] 5164.021873:          1 irq:softirq_entry: vec=3 [action=NET_RX]",
        ];
        for form in forms {
            let line = parse(form);
            assert_eq!((line.cpu, line.time_ns), (2, 5_164_021_873_000), "{form}");
            assert_eq!((line.event, line.thread), ("softirq_entry", Some(0)), "{form}");
            assert_eq!(line.number("vec"), Some(3));
            assert_eq!(line.text("action", "]"), Some("NET_RX"));
        }
    }

    #[test]
    fn names_of_tasks_can_look_like_other_things() {
        let line = parse("  my [003] prog-12-7  [001] ..... 1.5: sched_wakeup: comm=x pid=4");
        assert_eq!((line.cpu, line.thread, line.time_ns), (1, Some(7), 1_500_000_000));
        let line = parse("kworker/0:1-ev 94 [000] 2.000000001: 250000 cycles:P: ffff x (y)");
        assert_eq!((line.thread, line.period, line.event), (Some(94), Some(250_000), "cycles"));
        assert_eq!(line.task, "kworker/0:1-ev");
        assert_eq!((line.is_perf, line.fields), (true, "ffff x (y)"));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let line = parse("a-1 [000] 1.0: x: prev_pid=5 pid=6 name=two words");
        assert_eq!((line.number("pid"), line.number("prev_pid")), (Some(6), Some(5)));
        assert_eq!(line.text("name", "\n"), Some("two words"));
        assert_eq!(line.field("id"), None);
    }

    #[test]
    fn other_lines_are_not_events() {
        for line in [
            "",
            "[    1.234567] usb 1-1: new device",
            "a-1 [000] 1.x: softirq_entry: vec=3",
            "a-1 [abc] 1.0: softirq_entry: vec=3",
            "a-1 [000 1.0: softirq_entry: vec=3",
            "a-1 [000] 99999999999999999999.0: softirq_entry: vec=3",
            "\t          59fef5 copy_user (/lib/modules/vmlinux)",
        ] {
            assert_eq!(Line::parse(line), None, "{line}");
        }
        assert_eq!(parse("a-1 [000] 1.0: do_idle <-cpu_startup").event, "");
    }
}
