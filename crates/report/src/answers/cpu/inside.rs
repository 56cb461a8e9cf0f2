//! Where the time inside of interrupts and deferred work comes from: samples.

use smbscope_analysis::processors::{CallNode, InSamples, PathPart, Report, Role, SampledGroup};

use crate::answers::cpu::calls::{Call, CallTree};
use crate::answers::cpu::fields::column;
use crate::document::{Block, Cell, Section, Table};
use crate::value::format;

/// Rows of tables in a text and on a page.
const IN_TEXT: usize = 10;
const IN_PAGE: usize = 200;

pub(super) fn section(report: &Report) -> Option<Section> {
    let samples = report.in_samples.as_ref()?;
    if samples.interrupt + samples.deferred == 0 {
        return None;
    }
    let mut blocks = Vec::new();
    if !samples.receive.is_empty() {
        blocks.push(Block::Table(receive(samples)));
    }
    let of = "sampled_group";
    let all = (samples.interrupt + samples.deferred).max(1) as f64;
    let columns = vec![
        column(of, "module", 0, |row: &SampledGroup| Cell::text(&row.module)),
        column(of, "function", 0, |row: &SampledGroup| Cell::text(&row.function)),
        column(of, "deferred", 0, |row: &SampledGroup| Cell::some(row.deferred)),
        column(of, "interrupt", 0, |row: &SampledGroup| Cell::some(row.interrupt)),
        column("processor", "deferred_share", 1, move |row: &SampledGroup| {
            Cell::Share((row.deferred + row.interrupt) as f64 / all)
        })
        .titled("Share"),
    ];
    let table = Table::new(
        "What samples in interrupts and deferred work hit",
        "",
        &samples.groups,
        columns,
    );
    let sql = "SELECT module, function, count(*) FROM samples WHERE during IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC";
    blocks.push(Block::Table(table.cut(IN_TEXT, IN_PAGE, sql)));
    if !samples.calls.is_empty() {
        let role = |name: &str| -> &'static str {
            let known = samples.receive.iter().find(|part| part.name == name);
            known.map_or("", |part| role(part.role))
        };
        blocks.push(Block::drawing(CallTree {
            caption: "CallTree in interrupts and deferred work".to_owned(),
            help: "The outermost call is on top; the width is the number of samples.".to_owned(),
            samples: samples.calls.iter().map(|node| node.samples).sum(),
            nodes: samples.calls.iter().map(|node| call(node, &role)).collect(),
        }));
    }
    blocks.push(Block::Note(match samples.tracing_share {
        Some(share) => format!("Recording the trace took {} of all samples.", format::share(share)),
        None => "How much of it was recording the trace is not known without names of functions."
            .to_owned(),
    }));
    Some(Section {
        id: "inside",
        title: "Inside of interrupts and deferred work",
        help: "What the samples hit that were taken while a CPU ran handlers or deferred work.",
        blocks,
    })
}

/// What a part of the receive path is, in words.
fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Adapter => "adapter",
        Role::Team => "team",
        Role::Switch => "switch",
        Role::Filter => "filter",
        Role::Protocol => "protocol",
        Role::Receiver => "receiver",
        Role::Tracing => "tracing",
    }
}

fn receive(samples: &InSamples) -> Table {
    let of = "path_part";
    let columns = vec![
        column(of, "name", 0, |row: &PathPart| Cell::Code(row.name.clone())),
        column(of, "role", 0, |row: &PathPart| Cell::Text(role(row.role).to_owned())),
        column(of, "share", 0, |row: &PathPart| Cell::Share(row.share)),
        column(of, "own_share", 0, |row: &PathPart| Cell::Share(row.own_share)),
        column(of, "samples", 1, |row: &PathPart| Cell::Count(row.samples)),
    ];
    Table::new(
        "The path of received packets, from the adapter to TCP",
        "",
        &samples.receive,
        columns,
    )
    .cut(IN_TEXT, IN_PAGE, "SELECT module, count(*) FROM stacks GROUP BY module")
}

fn call(node: &CallNode, role: &impl Fn(&str) -> &'static str) -> Call {
    let module = node.name.split('!').next().unwrap_or_default();
    Call {
        name: node.name.clone(),
        role: role(module),
        samples: node.samples,
        own_samples: node.own_samples,
        calls: node.calls.iter().map(|node| call(node, role)).collect(),
    }
}
