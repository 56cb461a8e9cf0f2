//! Options about CPU traces, shared by the commands that report on them.

use std::str::FromStr;

use clap::Args;
use smbscope_analysis::processors::Limits;
use smbscope_store::source::Source;
use smbscope_tables::quantity::parse_duration;

use crate::exit::Failure;

/// Thresholds for CPU traces.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Options for CPU traces")]
pub struct TraceOptions {
    /// Durations that should not be exceeded: for deferred work (DPCs, softirqs), and after a comma for
    /// handlers of interrupts, such as 200us or 200us,50us [default: 100us,25us, Microsoft's guideline
    /// for drivers].
    #[arg(long, value_name = "DURATION[,DURATION]")]
    pub limit: Option<LimitOption>,
    /// Show what the CPUs did, where the inputs have SMB operations, too.
    #[arg(long = "cpu", alias = "processors")]
    pub cpu: bool,
}

/// The value of `--limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitOption(Limits);

impl FromStr for LimitOption {
    type Err = String;

    fn from_str(text: &str) -> Result<LimitOption, String> {
        let duration = |text: &str| {
            let ns = parse_duration(text.trim()).ok().and_then(|ns| i64::try_from(ns).ok());
            ns.filter(|ns| *ns > 0).ok_or_else(|| {
                format!("{text}: expected a duration such as 200us, or two: 200us,50us")
            })
        };
        let mut limits = Limits::default();
        let mut parts = text.split(',');
        limits.deferred_ns = duration(parts.next().unwrap_or_default())?;
        if let Some(interrupt) = parts.next() {
            limits.interrupt_ns = duration(interrupt)?;
        }
        match parts.next() {
            None => Ok(LimitOption(limits)),
            Some(more) => {
                Err(format!("{more}: expected at most two durations, such as 200us,50us"))
            }
        }
    }
}

impl TraceOptions {
    /// Leaves the operations of a source out with --cpu.
    ///
    /// # Errors
    ///
    /// A usage error if the source has no CPU trace.
    pub fn choose(&self, source: &mut Source) -> anyhow::Result<()> {
        if !self.cpu {
            return Ok(());
        }
        if !source.has_traces() {
            return Err(Failure::usage("--cpu: the inputs have no CPU trace"));
        }
        source.only_processors();
        Ok(())
    }

    /// The limits.
    pub fn limits(self) -> Limits {
        self.limit.map_or_else(Limits::default, |limit| limit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_two_durations_are_limits() {
        let limits = |text: &str| text.parse::<LimitOption>().map(|limit| limit.0);
        let (deferred_ns, interrupt_ns) = (200_000, Limits::default().interrupt_ns);
        assert_eq!(limits("200us"), Ok(Limits { deferred_ns, interrupt_ns }));
        assert_eq!(
            limits("1ms, 50us"),
            Ok(Limits { deferred_ns: 1_000_000, interrupt_ns: 50_000 })
        );
        for wrong in ["", "fast", "0us", "1us,2us,3us", "1us,"] {
            assert!(limits(wrong).is_err(), "{wrong}");
        }
    }
}
