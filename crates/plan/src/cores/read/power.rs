//! What saves power: `cpupower frequency-info` and `idle-info`, `powercfg /getactivescheme`.
//!
//! cpupower-frequency-info(1), cpupower-idle-info(1); Microsoft, "Power Policy Settings".

use serde::{Deserialize, Serialize};

use super::{Piece, command_line};
use crate::input::lines::Lines;
use crate::input::powershell::Object;

/// Idle states of a CPU, and governors.
const WORDS_MAX: usize = 64;

/// What a machine says about saving power.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    /// Governors of the frequency, each once.
    pub governors: Vec<String>,
    /// Idle states of the first CPU.
    pub idle: Vec<IdleState>,
    /// Windows: the name of the active power plan, in the language of the system, and its GUID.
    pub plan: Option<PowerPlan>,
}

/// A state that an idle CPU may enter (a C-state).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    pub name: String,
    /// Longest time to leave it, in microseconds.
    pub latency_usecs: u32,
    pub is_disabled: bool,
}

/// A power plan of Windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerPlan {
    pub name: String,
    /// In lower case.
    pub guid: String,
}

pub(super) fn starts(line: &str) -> bool {
    ["CPUidle driver:", "analyzing CPU "].iter().any(|start| line.starts_with(start))
        || plan(line).is_some()
}

pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) {
    let mut power = Power::default();
    if let Some(plan) = lines.peek().and_then(plan) {
        lines.skip(1);
        power.plan = Some(plan);
        pieces.push(Piece::Power(power));
        return;
    }
    let mut state: Option<IdleState> = None;
    while let Some(line) = lines.peek().filter(|line| command_line(line).is_none()) {
        if let Some((name, is_disabled)) = state_name(line) {
            keep(&mut power.idle, state.replace(IdleState { name, is_disabled, latency_usecs: 0 }));
        } else if let Some(latency) = line.strip_prefix("Latency:") {
            if let Some(state) = &mut state {
                state.latency_usecs = latency.trim().parse().unwrap_or(0);
            }
        } else if let Some((_, rest)) = line.split_once("The governor \"") {
            let governor = rest.split('"').next().unwrap_or_default().to_owned();
            if !power.governors.contains(&governor) && power.governors.len() < WORDS_MAX {
                power.governors.push(governor);
            }
        } else if !is_other(line) {
            break;
        }
        lines.skip(1);
    }
    keep(&mut power.idle, state);
    pieces.push(Piece::Power(power));
}

/// Keeps a state of the first CPU: later ones have the same names.
fn keep(states: &mut Vec<IdleState>, state: Option<IdleState>) {
    let state = state.filter(|state| states.iter().all(|other| other.name != state.name));
    states.extend(state.filter(|_| states.len() < WORDS_MAX));
}

/// `C6:`, `C6 (DISABLED) :`.
fn state_name(line: &str) -> Option<(String, bool)> {
    let name = line.trim_end().strip_suffix(':')?.trim_end();
    let (name, is_disabled) = match name.strip_suffix("(DISABLED)") {
        Some(name) => (name.trim_end(), true),
        None => (name, false),
    };
    let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.len() <= 16
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    is_name.then(|| (name.to_owned(), is_disabled))
}

/// Lines of these outputs without anything that a plan needs.
fn is_other(line: &str) -> bool {
    const STARTS: [&str; 9] = [
        " ",
        "\t",
        "CPUidle ",
        "analyzing CPU",
        "Number of idle states",
        "Available idle states",
        "Flags/Description:",
        "Usage:",
        "Duration:",
    ];
    line.trim().is_empty() || STARTS.iter().any(|start| line.starts_with(start))
}

/// `Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)`, in any language.
fn plan(line: &str) -> Option<PowerPlan> {
    let (before, rest) = line.split_once(':')?;
    let (guid, name) = rest.trim().split_once(' ')?;
    let name = name.trim().strip_prefix('(')?.split(')').next()?;
    (is_guid(guid) && before.contains("GUID"))
        .then(|| PowerPlan { name: name.to_owned(), guid: guid.to_ascii_lowercase() })
}

/// An object of `Win32_PowerPlan`, whose InstanceID is `Microsoft:PowerPlan\{GUID}`.
pub(super) fn read_plan(object: &Object) -> Option<Power> {
    let id = object.text(&["instanceid"])?;
    let guid = id.strip_prefix(r"Microsoft:PowerPlan\{")?.strip_suffix('}')?;
    let name = object.text(&["elementname"])?;
    is_guid(guid).then(|| Power {
        plan: Some(PowerPlan { name, guid: guid.to_ascii_lowercase() }),
        ..Power::default()
    })
}

fn is_guid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn power(text: &str) -> Power {
        let reading = read(text.as_bytes()).unwrap();
        assert_eq!(reading.unknown.count(), 0, "{:?}", reading.unknown);
        let [Piece::Power(power)] = &reading.pieces[..] else { panic!("{reading:?}") };
        power.clone()
    }

    #[test]
    fn idle_states_have_their_latency() {
        let power = power(
            "CPUidle driver: intel_idle\nCPUidle governor: menu\nanalyzing CPU 0:\n\nNumber of idle states: 3\n\
             Available idle states: POLL C1 C6\nPOLL:\nFlags/Description: CPUIDLE CORE POLL IDLE\nLatency: 0\nUsage: 1\n\
             Duration: 10\nC1 (DISABLED) :\nFlags/Description: MWAIT 0x00\nLatency: 2\nUsage: 5\nDuration: 90\n\
             C6:\nFlags/Description: MWAIT 0x20\nLatency: 133\nUsage: 7\nDuration: 900\n",
        );
        let states: Vec<_> = power
            .idle
            .iter()
            .map(|one| (one.name.as_str(), one.latency_usecs, one.is_disabled))
            .collect();
        assert_eq!(states, [("POLL", 0, false), ("C1", 2, true), ("C6", 133, false)]);
    }

    #[test]
    fn a_governor_and_a_power_plan_are_read() {
        let linux = power(
            "# cpupower frequency-info\nanalyzing CPU 0:\n  driver: intel_pstate\n  hardware limits: 800 MHz - 3.20 GHz\n  \
             current policy: frequency should be within 800 MHz and 3.20 GHz.\n                  \
             The governor \"powersave\" may decide which speed to use\n                  within this range.\n",
        );
        assert_eq!(linux.governors, ["powersave"]);
        let text =
            "GUID des Energieschemas: 381B4222-f694-41f0-9685-ff5bb260df2e  (Ausbalanciert)\r\n";
        let plan = power(text).plan.unwrap();
        assert_eq!(plan.name, "Ausbalanciert");
        assert_eq!(plan.guid, "381b4222-f694-41f0-9685-ff5bb260df2e");
        let json = r#"{"ElementName":"Balanced","InstanceID":"Microsoft:PowerPlan\\{381b4222-f694-41f0-9685-ff5bb260df2e}"}"#;
        assert_eq!(power(json).plan.unwrap().guid, plan.guid);
    }
}
