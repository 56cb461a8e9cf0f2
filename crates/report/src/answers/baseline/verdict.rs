//! What the judgement says first: how many settings touch file serving, which one costs, and the cheaper way.

use smbscope_plan::baseline::cost::{Cost, CostOutcome};
use smbscope_plan::baseline::judgement::Judgement;
use smbscope_plan::baseline::judgement::findings::FindingKind;

use super::words;
use crate::document::{Tile, Tone, Verdict};
use crate::value::format;

/// Share of the time of requests, per cent: a cost of this much or more is bad news.
const BAD_PERCENT: f64 = 10.0;

fn unknown(judgement: &Judgement) -> usize {
    let is_unknown = |cost: &&Cost| matches!(cost.outcome, CostOutcome::Unknown { .. });
    judgement.costs.iter().filter(is_unknown).count()
}

pub(super) fn verdict(judgement: &Judgement) -> Verdict {
    let touching = judgement.after.touching;
    let begin = match touching {
        1 => "1 setting touches file serving".to_owned(),
        count => format!("{} settings touch file serving", format::count(count)),
    };
    let costly: Vec<_> = judgement.costs.iter().filter(|cost| cost.costs()).collect();
    let unknown = unknown(judgement);
    let mut reasons = Vec::new();
    let mut off = judgement.findings.iter().filter(|one| one.kind == FindingKind::SwitchedOff);
    if let Some(first) = off.next() {
        reasons.extend(off.map(|one| one.what.clone()));
        reasons.push(format!("{begin}."));
        return Verdict { tone: Tone::Bad, sentence: words::finding(first), reasons };
    }
    let (tone, sentence) = match (costly.first(), unknown) {
        (Some(cost), _) => {
            let CostOutcome::Predicted(predicted) = &cost.outcome else {
                return Verdict { tone: Tone::Unknown, sentence: begin, reasons };
            };
            let count = match costly.len() {
                1 => "one costs".to_owned(),
                many => format!("{many} cost, most of all"),
            };
            let tone = match predicted.percent.value {
                BAD_PERCENT.. => Tone::Bad,
                _ => Tone::Watch,
            };
            let what = format::lowered(&cost.what);
            (tone, format!("{begin}, {count}: {what} ({})", words::cost(predicted)))
        }
        (None, 0) if judgement.difference.changes.is_empty() => {
            (Tone::Good, format!("{begin}, and nothing changes for it"))
        }
        (None, 0) => (Tone::Good, format!("{begin}, and none costs time here")),
        (None, 1) => (Tone::Watch, format!("{begin}; what one of them costs must be measured")),
        (None, many) => {
            (Tone::Watch, format!("{begin}; what {many} of them cost must be measured"))
        }
    };
    let price = judgement.findings.iter().find(|one| one.kind == FindingKind::Costly);
    if let Some(price) = price.and_then(|one| one.details.price.as_ref()) {
        reasons.push(format!("Security: {}; that is lost without it.", format::lowered(price)));
    }
    // Where nothing costs, what a way is known to save is not worth a headline.
    let is_worth = |saves: bool| !saves || !costly.is_empty();
    let mut ways = judgement.alternatives.iter().filter(|one| is_worth(one.saved_ns.is_some()));
    if let Some(way) = ways.find(|one| one.price.is_none()) {
        let saved =
            way.saved_ns_per_mib.map(|saved| format!("{} a MiB", words::added(-saved.value)));
        let saved = saved.or(way.saved_ns.map(|saved| words::added(-saved.value)));
        let saved = saved.map_or_else(String::new, |saved| format!(" ({saved})"));
        reasons.push(format!(
            "The cheaper way to the same protection: {}{saved}.",
            format::lowered(&way.what)
        ));
    }
    if !costly.is_empty() && unknown > 0 {
        reasons.push(match unknown {
            1 => "What one other setting costs must be measured.".to_owned(),
            many => format!("What {many} other settings cost must be measured."),
        });
    }
    Verdict { tone, sentence, reasons }
}

pub(super) fn tiles(judgement: &Judgement) -> Vec<Tile> {
    let after = &judgement.after;
    let mut tiles = vec![
        Tile::new(
            "Touch file serving",
            format::count(after.touching),
            format!("of {} settings", format::count(after.settings)),
        ),
        Tile::new(
            "Change",
            format::count(judgement.difference.changes.len() as u64),
            format!("{} known ones stay", format::count(judgement.difference.same)),
        ),
    ];
    let first = judgement.costs.iter().find(|cost| cost.costs());
    if let Some(CostOutcome::Predicted(one)) = first.map(|cost| &cost.outcome) {
        if let Some(mib) = one.ns_per_mib {
            tiles.push(Tile::new(
                "Added for each MiB",
                format::duration(mib.value as i64),
                words::interval(mib, |ns| format::duration(ns as i64)),
            ));
        }
        if let Some(cpu) = one.cpu_s_per_gb {
            tiles.push(Tile::new(
                "CPU time for each GB",
                format!("+{} s", format::number(cpu.value)),
                words::interval(cpu, format::number),
            ));
        } else if let Some(cpu) = one.cpu_ns_per_operation {
            tiles.push(Tile::new(
                "CPU time for each operation",
                words::added(cpu.value),
                words::interval(cpu, |ns| format::duration(ns as i64)),
            ));
        }
        if let Some(users) = one.users {
            tiles.push(Tile::new(
                "Users carried",
                format::change(users.percent.value),
                words::interval(users.percent, format::change),
            ));
        }
    }
    let unknown = unknown(judgement);
    if unknown > 0 {
        tiles.push(Tile::new("To be measured", format::count(unknown as u64), ""));
    }
    tiles
}
