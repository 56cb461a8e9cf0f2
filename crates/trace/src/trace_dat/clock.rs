//! From the times of records to nanoseconds.

use crate::bytes::Order;

/// The clock of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// As the kernel names it (Documentation/trace/ftrace.rst, `trace_clock`).
    pub name: Option<String>,
    /// Added to each time.
    offset_ns: i64,
    /// Multiplier, shift and offset of a counter of cycles.
    cycles: Option<(u32, u32, u64)>,
}

impl Clock {
    /// By the text of `trace_clock`: the chosen one is in brackets.
    pub fn choose(&mut self, text: &str) {
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        if let Some((chosen, _)) = chosen {
            self.name = Some(chosen.to_owned());
        }
    }

    /// Adds an offset, decimal or hexadecimal.
    pub fn shift(&mut self, text: &str, unit_ns: i64) {
        let text = text.trim();
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let number = match digits.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let offset = number.ok().and_then(|number| number.checked_mul(sign * unit_ns));
        self.offset_ns = self.offset_ns.saturating_add(offset.unwrap_or(0));
    }

    /// Takes the scale of the CPU's time stamp counter.
    pub fn scale(&mut self, value: &[u8], order: Order) {
        let numbers = (order.u32(value, 0), order.u32(value, 4), order.u64(value, 8));
        if let (Some(multiplier), Some(shift @ 0..64), Some(offset)) = numbers {
            self.cycles = Some((multiplier, shift, offset));
        }
    }

    /// Whether times are in nanoseconds, or can be converted.
    pub fn is_time(&self) -> bool {
        match self.name.as_deref() {
            Some("x86-tsc" | "tsc2nsec") => self.cycles.is_some(),
            Some("counter" | "uptime" | "ppc-tb") => false,
            _ => true,
        }
    }

    /// A time in nanoseconds; `None` if it cannot be one.
    pub fn nanoseconds(&self, time: u64) -> Option<i64> {
        let time = match self.cycles {
            Some((multiplier, shift, offset)) => {
                let scaled = (u128::from(time) * u128::from(multiplier)) >> shift;
                u64::try_from(scaled).ok()?.checked_add(offset)?
            }
            None => time,
        };
        let time = i64::try_from(time).ok()?.checked_add(self.offset_ns)?;
        (time >= 0).then_some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shifted_and_scaled() {
        let mut clock = Clock::default();
        assert_eq!((clock.nanoseconds(5), clock.is_time()), (Some(5), true));
        clock.choose("local global [x86-tsc] mono\n");
        assert_eq!((clock.name.as_deref(), clock.is_time()), (Some("x86-tsc"), false));
        let scale =
            [&1_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &10_u64.to_le_bytes()].concat();
        clock.scale(&scale, Order::Little);
        clock.shift("-0x2", 1_000);
        clock.shift("3", 1);
        assert_eq!((clock.nanoseconds(8_000), clock.is_time()), (Some(2_013), true));
        assert_eq!(clock.nanoseconds(u64::MAX), None);
        clock.shift("x", 1);
        clock.scale(&[0xff; 16], Order::Little);
        assert_eq!(clock.nanoseconds(8_000), Some(2_013));
    }
}
