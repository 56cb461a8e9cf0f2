//! Checks of a second server, made and to be made.

use smbscope_plan::replication::TEST_SR_TOPOLOGY;
use smbscope_plan::replication::checks::{Check, Outcome, outcome_of};
use smbscope_plan::replication::html::HtmlRow;

use super::{ReplicationPlan, name};
use crate::document::{Block, Cell, Column, Heading, Section, Table};
use crate::value::format;

/// The checks of the plan, and the tables of a report of Test-SRTopology.
pub(super) fn checks(plan: &ReplicationPlan) -> Section {
    let mut blocks = Vec::new();
    let shown = |check: &Check| {
        let outcome = match outcome_of(check) {
            Some(Outcome::Passed) => "met",
            Some(Outcome::Failed | Outcome::Warning) => "not met",
            Some(Outcome::ToBeMade) | None => "to be made",
        };
        Block::Note(format!("[{outcome}] {}: {}.", check.what, check.because))
    };
    let is_made = |check: &&Check| outcome_of(check) != Some(Outcome::ToBeMade);
    for (line, checks) in plan.forecast.lines.iter().zip(&plan.checks) {
        blocks.push(Block::Note(format!("Link of {}", name(line))));
        blocks.extend(checks.iter().filter(is_made).map(shown));
    }
    // They are the same for each link.
    let last = plan.checks.last().into_iter().flatten();
    blocks.extend(last.filter(|check| !is_made(check)).map(shown));
    blocks.push(Block::Note(format!("The checks that remain, in one command: {TEST_SR_TOPOLOGY}")));
    if let Some(report) = &plan.test_report {
        let troubles = report.troubles().len();
        blocks.push(Block::Note(format!(
            "The report of Test-SRTopology: its measured round trip and its results are in the checks above. {} of its rows \
             mention a failure, an error or a warning.",
            format::count(troubles as u64)
        )));
        if report.is_incomplete {
            blocks.push(Block::Warn(
                "The report of Test-SRTopology ends in the middle of a table or of the page: rows may be missing, failures \
                 among them. Copy the file again."
                    .to_owned(),
            ));
        }
        if report.is_cut {
            blocks.push(Block::Warn(
                "The report of Test-SRTopology has too many rows: the last ones are not shown."
                    .to_owned(),
            ));
        }
        for text in &report.texts {
            blocks.push(Block::Note(format!("Test-SRTopology, {}: {}", text.heading, text.text)));
        }
        for table in &report.tables {
            let width = table.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
            let columns = (0..width).map(|place| {
                Column::new(Heading::new("", false, 0), move |row: &HtmlRow| {
                    row.cells.get(place).map_or(Cell::Empty, |cell| Cell::Text(cell.clone()))
                })
            });
            let caption = format!("Test-SRTopology: {}", table.heading);
            blocks.push(Block::Table(Table::new(caption, "", &table.rows, columns.collect())));
        }
    }
    Section {
        id: "checks",
        title: "Checks before it is set up",
        help: "The checks of Test-SRTopology, where a recording and the given link decide them. The others are listed with the command that makes them.",
        blocks,
    }
}
