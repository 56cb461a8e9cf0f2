//! Commands for Windows, in PowerShell.
//!
//! Owns `Set-NetAdapterRss` and `Enable-NetAdapterRss` with their undo. Does not own the range ([`Range`]).
//!
//! An adapter from a trace is known by its description, and its settings are not: they are saved to a file before they
//! are changed, and the undo reads that file.
//!
//! Microsoft: "Set-NetAdapterRss", "Enable-NetAdapterRss" (module NetAdapter), "Standardized INF keywords for RSS".

use super::super::layout::{AdapterLayout, CpuId, Range};
use super::super::topology::Adapter;
use super::{Commands, Details, Interruption, Kind, Reason, Refusal, Selector, Step};
use crate::script::{Check, names, quote};

/// `*NumaNodeId` of an adapter without a preferred node.
const ANY_NODE: u32 = 65_535;

/// The file with the settings found, in the folder in which the script runs.
const FOUND: &str = "rss-found.xml";

/// Settings that a step changes. The range comes before the profile, because the profile Balanced refuses a range.
const SAVED: &str = "'Enabled', 'BaseProcessorGroup', 'BaseProcessorNumber', 'MaxProcessorGroup', \
                     'MaxProcessorNumber', 'MaxProcessors'";

pub(super) fn commands(cards: &[(&AdapterLayout, &Adapter)], commands: &mut Commands) {
    if cards.iter().any(|(_, card)| is_from_trace(card)) {
        commands.names_are = Selector::Description;
        commands.steps.push(save());
    }
    for (layout, card) in cards {
        let steps =
            if is_from_trace(card) { saved_steps(layout, card) } else { steps(layout, card) };
        match steps {
            Ok(steps) => commands.steps.extend(steps),
            Err(reason) => commands.refused.push(Refusal { card: card.name.clone(), reason }),
        }
    }
}

/// The start of a script.
pub(super) fn preamble(what: &str) -> Vec<String> {
    let text = format!(
        r#"# smbscope plan cores: {what}. Run it in an elevated PowerShell.
$ErrorActionPreference = 'Stop'

# Waits until the link of an adapter is as it was.
function Wait-Link([string]$Name, [string]$Status, [string]$NameIs = 'Name') {{
    $selection = @{{ $NameIs = $Name }}
    for ($second = 0; $second -lt 60; $second++) {{
        $adapter = Get-NetAdapter @selection -ErrorAction SilentlyContinue
        if ($adapter -and $adapter.Status -eq $Status) {{ return }}
        Start-Sleep -Seconds 1
    }}
    throw "The link of $Name is not $Status after 60 seconds. The script stops here."
}}"#
    );
    text.lines().map(String::from).collect()
}

/// Keeps the state of an adapter's link.
pub(super) fn remember(card: &str, selector: Selector) -> String {
    format!(
        "$status = (Get-NetAdapter -{} {}).Status",
        selector.parameter(),
        quote::powershell(card)
    )
}

/// Waits for it.
pub(super) fn wait(card: &str, selector: Selector) -> String {
    let more = match selector {
        Selector::Name => "",
        Selector::Description => " InterfaceDescription",
    };
    format!("Wait-Link {} $status{more}", quote::powershell(card))
}

/// Whether the name is a description and the settings found are not known: a trace has it so.
fn is_from_trace(card: &Adapter) -> bool {
    card.description.as_ref() == Some(&card.name)
        && card.rss.base.is_none()
        && card.rss.is_enabled.is_none()
}

/// Saves the settings of all adapters once.
fn save() -> Step {
    Step {
        does: format!("Save the settings found to {FOUND}, for the undo"),
        apply: vec![
            format!(
                "if (Test-Path {FOUND}) {{ throw '{FOUND} exists: it has the settings of an earlier run. Move it away.' }}"
            ),
            format!("Get-NetAdapterRss | Export-Clixml -Path {FOUND}"),
        ],
        undo: Vec::new(),
        checks: vec![Check {
            command: format!(
                "Import-Clixml -Path {FOUND} | Format-Table InterfaceDescription, Enabled, Profile, BaseProcessorNumber"
            ),
            expected: "each adapter of the plan is in it".into(),
        }],
        details: Details { card: None, kind: Kind::Save, interrupts: Interruption::None },
    }
}

fn saved_steps(layout: &AdapterLayout, card: &Adapter) -> Result<Vec<Step>, Reason> {
    if !names::is_alias(&card.name) {
        return Err(Reason::Name);
    }
    let range = layout.range.ok_or(Reason::RangeUnknown)?;
    let name = quote::powershell(&card.name);
    let set = format!("Set-NetAdapterRss -InterfaceDescription {name}");
    Ok(vec![Step {
        does: does(&range, layout.queues.len()),
        apply: vec![format!(
            "{set} -Enabled $true -Profile {} -BaseProcessorGroup {} -BaseProcessorNumber {} -MaxProcessorGroup {} \
             -MaxProcessorNumber {} -MaxProcessors {}",
            range.profile.name(),
            range.base.0,
            range.base.1,
            range.last.0,
            range.last.1,
            range.processors_max
        )],
        undo: vec![
            format!(
                "$found = Import-Clixml -Path {FOUND} | Where-Object InterfaceDescription -eq {name}; $values = @{{}}"
            ),
            format!(
                "foreach ($setting in {SAVED}) {{ if ($null -ne $found.$setting) {{ $values[$setting] = $found.$setting }} }}"
            ),
            format!("{set} @values"),
            format!("if ($null -ne $found.Profile) {{ {set} -Profile $found.Profile }}"),
        ],
        checks: vec![Check {
            command: format!(
                "Get-NetAdapterRss -InterfaceDescription {name} | Format-List Enabled, Profile, BaseProcessorGroup, \
                 BaseProcessorNumber, MaxProcessorGroup, MaxProcessorNumber, MaxProcessors, IndirectionTable"
            ),
            expected: format!(
                "the values set; IndirectionTable has CPUs {} only",
                list(&layout.queues)
            ),
        }],
        details: Details {
            card: Some(card.name.clone()),
            kind: Kind::Processors,
            interrupts: Interruption::AdapterRestart,
        },
    }])
}

fn steps(layout: &AdapterLayout, card: &Adapter) -> Result<Vec<Step>, Reason> {
    if !names::is_alias(&card.name) {
        return Err(Reason::Name);
    }
    let range = layout.range.ok_or(Reason::RangeUnknown)?;
    let (Some(base), Some(last)) = (card.rss.base, card.rss.last) else {
        return Err(Reason::RangeUnknown);
    };
    let is_enabled = card.rss.is_enabled.ok_or(Reason::StateUnknown)?;
    let name = quote::powershell(&card.name);
    let mut steps = Vec::new();
    if !is_enabled {
        steps.push(Step {
            does: "Switch receive-side scaling on".into(),
            apply: vec![format!("Enable-NetAdapterRss -Name {name}")],
            undo: vec![format!("Disable-NetAdapterRss -Name {name}")],
            checks: vec![Check {
                command: format!("(Get-NetAdapterRss -Name {name}).Enabled"),
                expected: "True".into(),
            }],
            details: Details {
                card: Some(card.name.clone()),
                kind: Kind::Enable,
                interrupts: Interruption::AdapterRestart,
            },
        });
    }
    let (apply, undo) = parameters(&range, layout, card, base, last);
    let found = card.rss.profile.as_deref().and_then(profile);
    // With the profile Balanced Windows refuses a range: it is set back before the profile.
    let (first, then) = match found {
        Some("Balanced") => (String::new(), Some("Balanced")),
        Some(found) => (format!(" -Profile {found}"), None),
        None => (String::new(), None),
    };
    let wanted = found.map(|_| format!(" -Profile {}", range.profile.name())).unwrap_or_default();
    let (apply, undo) = (wanted + &apply, first + &undo);
    if apply != undo {
        let set = format!("Set-NetAdapterRss -Name {name}");
        let mut undo = vec![format!("{set}{undo}")];
        undo.extend(then.map(|profile| format!("{set} -Profile {profile}")));
        steps.push(Step {

            does: does(&range, layout.queues.len()),
            apply: vec![format!("{set}{apply}")],
            undo,
            checks: vec![Check {
                command: format!(
                    "Get-NetAdapterRss -Name {name} | Format-List Profile, BaseProcessorGroup, BaseProcessorNumber, \
                     MaxProcessorGroup, MaxProcessorNumber, MaxProcessors, NumberOfReceiveQueues, IndirectionTable"
                ),
                expected: format!("the values set; IndirectionTable has CPUs {} only", list(&layout.queues)),
            }],
            details: Details { card: Some(card.name.clone()), kind: Kind::Processors, interrupts: Interruption::AdapterRestart, },
        });
    }
    Ok(steps)
}

/// The parameters to set and those found, without the profile: the same ones, and only those that are known.
fn parameters(
    range: &Range,
    layout: &AdapterLayout,
    card: &Adapter,
    base: CpuId,
    last: CpuId,
) -> (String, String) {
    let rss = &card.rss;
    let (mut apply, mut undo) = (String::new(), String::new());
    let mut put = |parameter: &str, value: &str, found: &str| {
        apply.push_str(&format!(" -{parameter} {value}"));
        undo.push_str(&format!(" -{parameter} {found}"));
    };
    put("BaseProcessorGroup", &range.base.0.to_string(), &base.0.to_string());
    put("BaseProcessorNumber", &range.base.1.to_string(), &base.1.to_string());
    put("MaxProcessorGroup", &range.last.0.to_string(), &last.0.to_string());
    put("MaxProcessorNumber", &range.last.1.to_string(), &last.1.to_string());
    if let Some(found) = rss.processors_max {
        put("MaxProcessors", &range.processors_max.to_string(), &found.to_string());
    }
    let queues = u32::try_from(layout.queues.len()).unwrap_or(u32::MAX);
    // More queues than CPUs do no harm. Set-NetAdapterRss refuses a number that the driver does not list, and one above
    // what it has.
    if let Some(found) = rss.queues.filter(|&found| found < queues)
        && let Some(wanted) = queue_count(card, queues).filter(|&wanted| wanted > found)
    {
        put("NumberOfReceiveQueues", &wanted.to_string(), &found.to_string());
    }
    if range.node != rss.node {
        let node = |node: Option<u32>| node.unwrap_or(ANY_NODE).to_string();
        put("NumaNode", &node(range.node), &node(rss.node));
    }
    (apply, undo)
}

/// The number of queues to set for this number of CPUs: one that the driver lists, else a power of two up to its most.
fn queue_count(card: &Adapter, queues: u32) -> Option<u32> {
    let counts = &card.queue_counts;
    let listed = counts.iter().copied().find(|&count| count >= queues).or(counts.last().copied());
    let most = card.queues_max?;
    Some(listed.unwrap_or_else(|| queues.next_power_of_two().min(most).max(queues.min(most))))
}

/// The value of `-Profile` for a name as outputs have it; `None` for one that is unknown, which is then left alone.
fn profile(name: &str) -> Option<&'static str> {
    match name {
        "Closest" | "ClosestProcessor" => Some("Closest"),
        "ClosestStatic" | "ClosestProcessorStatic" => Some("ClosestStatic"),
        "NUMA" | "NUMAScaling" => Some("NUMA"),
        "NUMAStatic" | "NUMAScalingStatic" => Some("NUMAStatic"),
        "Conservative" | "ConservativeScaling" => Some("Conservative"),
        "Balanced" => Some("Balanced"),
        _ => None,
    }
}

fn does(range: &Range, queues: usize) -> String {
    let (base, last) = (range.base, range.last);
    format!(
        "Receive on {queues} CPUs from {}:{} to {}:{}, profile {}",
        base.0,
        base.1,
        last.0,
        last.1,
        range.profile.name()
    )
}

fn list(cpus: &[CpuId]) -> String {
    cpus.iter().map(|cpu| format!("{}:{}", cpu.0, cpu.1)).collect::<Vec<_>>().join(", ")
}
