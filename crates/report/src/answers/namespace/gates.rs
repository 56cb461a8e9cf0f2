//! What a gate says: go or no-go, who holds it up and until when.

use smbscope_findings::Severity;
use smbscope_plan::namespace::gate::{
    ClientVerdict, Reason, ReasonKind, StaleAnswer, Verdict as GateVerdict,
};

use super::NamespacePlan;
use super::words::{self, nanoseconds};
use crate::answers::namespace::fields::column;
use crate::document::{Block, Cell, Column, FindingLine, Heading, Section, Table};
use crate::value::format;

/// Clients in text and on the page.
const IN_TEXT: usize = 40;
const IN_PAGE: usize = 500;
/// Clients that hold it up and are not folded.
const HELD_SHOWN: usize = 200;
/// Missing clients that are named.
const NAMED: usize = 200;

pub(super) fn section(verdict: &GateVerdict, plan: &NamespacePlan) -> Section {
    let mut blocks = Vec::new();
    let word = if verdict.is_go { "Go" } else { "No-go" };
    let because = if verdict.because.is_empty() {
        String::new()
    } else {
        format!(": {}", verdict.because.join("; "))
    };
    let sentence = format!("{word} for stage {}{because}.", verdict.stage.name());
    blocks.push(if verdict.is_go { Block::Note(sentence) } else { Block::Warn(sentence) });
    if let Some(rule) = verdict.rule {
        blocks.push(Block::Note(format!("It is go when {}.", words::rule(rule))));
    }
    let time = |at: i64| plan.clock.second(nanoseconds(at));
    if let Some(until) = verdict.waited_until_s {
        blocks.push(Block::Note(format!("The waiting time of the plan ends at {}.", time(until))));
    }
    if !verdict.missing.is_empty() {
        let names: Vec<_> = verdict.missing.iter().take(NAMED).map(String::as_str).collect();
        let more = match verdict.missing.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        blocks.push(Block::Warn(format!("Missing: {}{more}.", names.join(", "))));
    }
    blocks.extend(held(&verdict.held, plan));
    blocks.push(clients("What the clients hold that are not ready", &verdict.held));
    blocks.push(stale(&verdict.stale_answers));
    let ready = clients("Clients that are ready", &verdict.ready_clients);
    blocks.push(Block::fold(format::counted(verdict.ready, "client that is ready"), vec![ready]));
    Section {
        id: "gate",
        title: "The gate",
        help: "From the referral caches of clients and from captures. A client that is missing, or whose cache was read too early, is not ready.",
        blocks,
    }
}

/// The clients that hold it up, why and until when.
fn held(rows: &[ClientVerdict], plan: &NamespacePlan) -> Vec<Block> {
    let judgement = |row: &ClientVerdict| {
        let reasons: Vec<_> = row.reasons.iter().map(words::reason).collect();
        let is_over = row.reasons.iter().any(|reason| reason.kind == ReasonKind::ReadTooLongAgo);
        let until = match (row.ready_at_s, row.open_files) {
            _ if is_over => String::new(),
            (None, 1..) => "Until its files are closed.".to_owned(),
            (Some(at), _) => format!("Until {} at most.", plan.clock.second(nanoseconds(at))),
            (None, 0) => String::new(),
        };
        let is_early = |reason: &Reason| reason.kind == ReasonKind::ReadTooEarly;
        FindingLine {
            severity: match (row.open_files, row.reasons.iter().all(is_early)) {
                (_, true) => Severity::Low,
                (0, _) => Severity::Medium,
                _ => Severity::High,
            },
            about: row.client.clone(),
            sentence: format!("{}. {until}", reasons.join("; ")),
        }
    };
    let judged = rows.iter().map(judgement).collect();
    Block::findings(judged, HELD_SHOWN, |others| format::counted(others, "more client"))
}

fn clients(caption: &str, rows: &[ClientVerdict]) -> Block {
    let of = "gate_client";
    let time = |at: Option<i64>| at.map_or(Cell::Empty, |at| Cell::Time(nanoseconds(at)));
    let names = |names: &[String]| {
        if names.is_empty() { Cell::Empty } else { Cell::Text(names.join(", ")) }
    };
    let mut columns =
        vec![column(of, "client", 0, |row: &ClientVerdict| Cell::Text(row.client.clone()))];
    columns.push(column(of, "uses", 1, |row: &ClientVerdict| Cell::text(&row.uses)));
    columns.push(column(of, "open_files", 1, |row: &ClientVerdict| Cell::some(row.open_files)));
    columns.push(column(of, "lists_new", 2, move |row: &ClientVerdict| names(&row.lists_new)));
    columns.push(column(of, "lists_old", 2, move |row: &ClientVerdict| names(&row.lists_old)));
    columns.push(column(of, "read_at_s", 3, move |row: &ClientVerdict| time(row.read_at_s)));
    let mut table = Table::new(caption, "", rows, columns);
    (table.in_text, table.in_page) = (IN_TEXT, IN_PAGE);
    Block::Table(table)
}

fn stale(rows: &[StaleAnswer]) -> Block {
    let columns = vec![
        column("stale_answer", "answered_by", 0, |row: &StaleAnswer| {
            Cell::Text(row.answered_by.clone())
        }),
        column("stale_answer", "at_s", 0, |row: &StaleAnswer| Cell::Time(nanoseconds(row.at_s))),
        Column::new(Heading::new("Servers in the answer", false, 0), |row: &StaleAnswer| {
            Cell::Text(row.servers.join(", "))
        }),
    ];
    let help = "They should know the change by now: see stage refresh.";
    Block::Table(Table::new("Servers that answer with the old list", help, rows, columns))
}
