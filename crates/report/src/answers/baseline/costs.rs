//! The costs of a baseline as tables, and the cheaper ways.

use smbscope_plan::baseline::catalogue::value::text;
use smbscope_plan::baseline::cost::predicted::{CommandCost, Estimate, Predicted};
use smbscope_plan::baseline::cost::{Cost, CostOutcome};
use smbscope_plan::baseline::judgement::Judgement;
use smbscope_plan::baseline::judgement::alternatives::Alternative;
use smbscope_plan::baseline::terms::place_title;

use super::words;
use crate::answers::baseline::fields::{column, field};
use crate::document::{Block, Cell, Column, Heading, Section, Table};
use crate::value::format;

/// A cost with its numbers.
type Row<'a> = (&'a Cost, &'a Predicted);

pub(super) fn costs(judgement: &Judgement) -> Section {
    let (of, predicted) = ("baseline_cost", "baseline_predicted");
    let rows: Vec<Row<'_>> = judgement
        .costs
        .iter()
        .filter_map(|cost| match &cost.outcome {
            CostOutcome::Predicted(predicted) => Some((cost, &**predicted)),
            _ => None,
        })
        .collect();
    let time = |estimate: Option<Estimate>| {
        estimate.map_or(Cell::Empty, |one| Cell::Measure(one.value, words::added(one.value)))
    };
    let percent =
        |estimate: Estimate| Cell::Measure(estimate.value, format::change(estimate.value));
    let columns = vec![
        column(of, "what", 0, |row: &Row| Cell::Text(row.0.what.clone())),
        measured(predicted, "added_per_mib", 0, move |row: &Row| time(row.1.ns_per_mib)),
        Column::new(Heading::new("95 % interval", true, 2), |row: &Row| {
            row.1.ns_per_mib.map_or(Cell::Empty, |one| {
                Cell::Text(words::interval(one, |ns| format::duration(ns as i64)))
            })
        }),
        measured(predicted, "percent", 0, move |row: &Row| percent(row.1.percent)),
        measured(predicted, "scenarios", 1, |row: &Row| {
            let factor = row.1.scenarios.as_ref().and_then(CommandCost::factor);
            factor.map_or(Cell::Empty, |factor| {
                Cell::Measure(factor, format!("{} times", format::fixed(factor, 2)))
            })
        }),
        measured(predicted, "cpu_s_per_gb", 1, |row: &Row| {
            row.1
                .cpu_s_per_gb
                .map_or(Cell::Empty, |one| Cell::Measure(one.value, format::number(one.value)))
        }),
        measured(predicted, "cpu_per_operation", 1, move |row: &Row| {
            time(row.1.cpu_ns_per_operation)
        }),
        measured(predicted, "users", 0, move |row: &Row| {
            row.1.users.map_or(Cell::Empty, |one| percent(one.percent))
        }),
    ];
    let mut blocks = vec![Block::Table(Table::new("Predicted costs", "", &rows, columns))];
    for (cost, predicted) in &rows {
        let mut inside = vec![by_command(&cost.what, predicted)];
        let sentences = predicted.notes.iter().map(|note| Block::Note(note.clone()));
        inside.extend(sentences);
        inside.extend(predicted.warnings.iter().map(|warning| Block::Warn(warning.clone())));
        blocks.push(Block::fold(format!("By command: {}", cost.what), inside));
    }
    let nothing = judgement.costs.iter().filter_map(|cost| match &cost.outcome {
        CostOutcome::Nothing { because } => Some(Block::Note(format!("{}: {because}", cost.what))),
        _ => None,
    });
    let nothing: Vec<_> = nothing.collect();
    if !nothing.is_empty() {
        let title =
            format!("{} changes that cost nothing, and why", format::count(nothing.len() as u64));
        blocks.push(Block::fold(title, nothing));
    }
    Section {
        id: "costs",
        title: "What it costs here",
        help: "By replaying the recording with each change, with the cryptography of the calibrated machine. The interval has the scatter of the recording and a tenth for the calibration.",
        blocks,
    }
}

fn by_command(what: &str, predicted: &Predicted) -> Block {
    let of = "baseline_command";
    let columns = vec![
        column(of, "name", 0, |row: &CommandCost| Cell::Text(row.name.clone())),
        column(of, "n", 1, |row: &CommandCost| Cell::Count(row.n)),
        column(of, "before_ns", 0, |row: &CommandCost| Cell::Duration(row.before_ns as i64)),
        column(of, "after_ns", 0, |row: &CommandCost| Cell::Duration(row.after_ns as i64)),
        measured(of, "added", 0, |row: &CommandCost| {
            Cell::Measure(row.added_ns.value, words::added(row.added_ns.value))
        }),
        Column::new(Heading::new("95 % interval", true, 1), |row: &CommandCost| {
            Cell::Text(words::interval(row.added_ns, |ns| format::duration(ns as i64)))
        }),
    ];
    let caption = format!("{what}: time of each command");
    Block::Table(Table::new(caption, "", &predicted.commands, columns))
}

/// What must be measured: changes with the same reason and experiment together.
pub(super) fn unknown(judgement: &Judgement) -> Section {
    type Unknown<'a> = (&'a str, &'a str);
    let mut groups: Vec<(Unknown<'_>, Vec<&str>)> = Vec::new();
    for cost in &judgement.costs {
        let CostOutcome::Unknown { because, experiment } = &cost.outcome else { continue };
        let key = (because.as_str(), experiment.as_str());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, names)) => names.push(&cost.what),
            None => groups.push((key, vec![&cost.what])),
        }
    }
    let of = "baseline_cost";
    let columns = vec![
        column(of, "what", 0, |row: &(Unknown<'_>, Vec<&str>)| Cell::Text(row.1.join("; "))),
        column(of, "because", 0, |row: &(Unknown<'_>, Vec<&str>)| Cell::Text(row.0.0.to_owned())),
    ];
    let mut blocks = vec![Block::Table(Table::new("Not predicted", "", &groups, columns))];
    blocks.extend(groups.iter().map(|((because, experiment), names)| {
        Block::Note(format!("{}: {because} Experiment: {experiment}", names.join("; ")))
    }));
    Section {
        id: "unknown",
        title: "What must be measured",
        help: "Changes that cannot be predicted: why, and the experiment that shows what they cost.",
        blocks,
    }
}

/// A column of numbers with their units.
fn measured<'a, T>(
    object: &str,
    name: &str,
    rank: u8,
    value: impl Fn(&T) -> Cell + 'a,
) -> Column<'a, T> {
    Column::new(Heading::new(field(object, name).title, true, rank), value)
}

pub(super) fn alternatives(judgement: &Judgement) -> Section {
    let of = "baseline_alternative";
    let columns = vec![
        column(of, "what", 0, |way: &Alternative| Cell::Text(way.what.clone())),
        measured(of, "saved_per_mib", 0, |way: &Alternative| {
            let saved = way.saved_ns_per_mib;
            saved.map_or(Cell::Empty, |one| {
                Cell::Measure(one.value, format::duration(one.value as i64))
            })
        }),
        measured(of, "saved", 1, |way: &Alternative| {
            let saved = way.saved_ns;
            saved.map_or(Cell::Empty, |one| {
                Cell::Measure(one.value, format::duration(one.value as i64))
            })
        }),
        measured(of, "users_percent", 0, |way: &Alternative| {
            way.users_percent
                .map_or(Cell::Empty, |one| Cell::Measure(one.value, format::change(one.value)))
        }),
        column(of, "price", 0, |way: &Alternative| {
            Cell::Text(way.price.clone().unwrap_or_else(|| "none".to_owned()))
        }),
    ];
    let table = Table::new("Ways, and what they save", "", &judgement.alternatives, columns);
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(judgement.alternatives.iter().flat_map(alternative));
    Section {
        id: "alternatives",
        title: "The cheaper way to the same protection",
        help: "Before anything is switched off. Where a way protects less, its price is named.",
        blocks,
    }
}

fn alternative(way: &Alternative) -> Vec<Block> {
    let saved = match (way.saved_ns_per_mib, way.saved_ns, &way.unknown) {
        (Some(one), _, _) => format!(
            " Saves {} a MiB ({}).",
            format::duration(one.value as i64),
            words::interval(one, |ns| format::duration(ns as i64))
        ),
        (None, Some(one), _) => {
            format!(" Saves {} of all recorded requests.", format::duration(one.value as i64))
        }
        (None, None, Some(because)) => format!(" The saving is not predicted: {because}"),
        (None, None, None) => String::new(),
    };
    let users = way.users_percent.map_or_else(String::new, |users| {
        format!(" The server then carries {} than today.", words::users(users.value))
    });
    let price = way
        .price
        .as_ref()
        .map_or_else(String::new, |price| format!(" Price in security: {price}."));
    let sentence = format!(
        "{}.{saved}{users} Protection: {}{price} Needs: {}",
        way.what, way.protection, way.needs
    );
    let settings = way.settings.iter().map(|setting| {
        let value = text(&setting.value).unwrap_or_else(|| "removed".to_owned());
        format!("{} = {value}", place_title(&setting.place))
    });
    let settings: Vec<_> = settings.collect();
    let mut blocks = vec![Block::Note(sentence)];
    if !settings.is_empty() {
        blocks.push(Block::Note(format!("Settings: {}.", settings.join("; "))));
    }
    blocks
}
