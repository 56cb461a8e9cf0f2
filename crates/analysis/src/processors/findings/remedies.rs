//! Which remedies of a finding fit the system of the trace, its version, the driver, and what was recorded.

use smbscope_findings::Remedy;

use super::{Finding, ProcessorFindingKind};
use crate::processors::data::Report;

/// The first build whose PowerShell has Get-NetAdapterRss, Get-NetAdapterBinding and SMB Multichannel (Windows Server 2012).
const BUILD_2012: u32 = 9_200;
const BEFORE_2012: &str = "Windows before 2012";

/// Teams of makers of adapters, by the beginnings of the names of their drivers: Remove-NetLbfoTeam does not see them.
const TEAMS: [(&str, &str); 5] = [
    (
        "ians",
        "remove the team with Intel's own tool, because Remove-NetLbfoTeam does not see it: Remove-IntelNetTeam of the PROSet module, or the Teaming tab of the adapter",
    ),
    (
        "basp",
        "remove the team with Broadcom's own tool (BACS), because Remove-NetLbfoTeam does not see it",
    ),
    (
        "cpqteam",
        "remove the team with HP's own tool (Network Configuration Utility), because Remove-NetLbfoTeam does not see it",
    ),
    (
        "hpteam",
        "remove the team with HP's own tool (Network Configuration Utility), because Remove-NetLbfoTeam does not see it",
    ),
    (
        "qlteam",
        "remove the team with QLogic's own tool, because Remove-NetLbfoTeam does not see it",
    ),
];

/// Keeps the remedies that fit.
pub(super) fn fit(one: &mut Finding, report: &Report) {
    let is_old = report.windows_build().is_some_and(|build| build < BUILD_2012);
    let has_old = one.remedies.iter().any(|remedy| remedy.at == BEFORE_2012);
    let system = match (report.is_windows(), is_old && has_old) {
        (true, true) => BEFORE_2012,
        (true, false) => "Windows",
        (false, _) => "Linux",
    };
    one.remedies.retain(|remedy| remedy.at == system);
    let has_stacks = report.in_samples.as_ref().is_some_and(|samples| !samples.calls.is_empty());
    if one.kind == ProcessorFindingKind::LongRuns && has_stacks {
        let what = "look at what it calls (section Inside of interrupts and deferred work, and the page of report --html), and update that driver";
        one.remedies = vec![Remedy::from((system, what))];
    }
    if one.kind == ProcessorFindingKind::TeamInReceivePath
        && let Some(name) = one.about.first().map(|it| it.name.to_ascii_lowercase())
        && let Some((_, what)) = TEAMS.iter().find(|(begin, _)| name.starts_with(begin))
    {
        let kept = one.remedies.drain(..).skip(usize::from(!is_old));
        one.remedies = std::iter::once(Remedy::from((system, *what))).chain(kept).collect();
    }
}

impl Report {
    /// The build of Windows, as the header of a log says it.
    pub fn windows_build(&self) -> Option<u32> {
        let build = |format: &str| format.split_once(", build ")?.1.parse().ok();
        self.traces.iter().find_map(|trace| build(&trace.format)).filter(|build| *build > 0)
    }
}
