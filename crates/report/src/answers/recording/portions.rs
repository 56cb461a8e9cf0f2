//! Where the time goes at a glance: one bar by slice, and one by command.

use smbscope_analysis::summary::{BusySplit, Report, Server};
use smbscope_tables::slice::Kind;

use crate::answers::recording::fields::field;
use crate::document::{Block, Portions};
use crate::value::format;

/// Parts of a bar that have names of their own.
const PARTS_MAX: usize = 7;
/// The colour of what has no name, or no explanation.
const OTHER: usize = 3;
/// Colours of commands.
const COLOURS: [usize; 7] = [1, 0, 7, 2, 5, 4, 6];

/// A part: the place of its colour, its name, and its time, ns.
type Part = (usize, String, i64);

pub(crate) fn portions(report: &Report) -> Vec<Block> {
    let by_slice = match &report.server {
        Some(server) if !server.commands.is_empty() => Portions {
            caption: "By slice of the server's time".to_owned(),
            help: "Measured inside the server, from the last byte of a request to the first byte of its reply.".to_owned(),
            ..bar(slices(server))
        },
        _ => Portions {
            caption: "By part of an operation".to_owned(),
            help: "Time with an operation in flight, summed over connections.".to_owned(),
            ..bar(parts(&report.totals.busy_split))
        },
    };
    let commands = report.commands.iter().enumerate().map(|(place, row)| {
        let colour = COLOURS.get(place).copied().unwrap_or(OTHER);
        (colour, row.command.clone(), row.tally.busy_ns)
    });
    let by_command = Portions {
        caption: "By command".to_owned(),
        help: "The same time, by the command of the operation.".to_owned(),
        ..bar(commands.collect())
    };
    Block::worth_showing(vec![Block::chart(by_slice), Block::chart(by_command)])
}

fn parts(split: &BusySplit) -> Vec<Part> {
    let below = split.server_ns.min(0);
    let of = |colour, name, ns| (colour, field("busy_split", name).title.to_owned(), ns);
    vec![
        of(1, "server_ns", split.server_ns),
        of(7, "network_ns", split.network_ns.saturating_add(below)),
        of(2, "unsplit_ns", split.unsplit_ns),
        of(0, "request_transfer_ns", split.request_transfer_ns),
        of(4, "response_transfer_ns", split.response_transfer_ns),
    ]
}

fn slices(server: &Server) -> Vec<Part> {
    let sum = |kind: Kind| {
        let slices = server.commands.iter().flat_map(|row| &row.slices);
        let slices = slices.filter(|slice| slice.kind == kind.name());
        slices.map(|slice| slice.spread.distribution.sum_ns.max(0)).fold(0, i64::saturating_add)
    };
    let kinds = server.kinds.iter().filter_map(|name| Kind::from_name(name));
    let mut parts: Vec<Part> = kinds
        .filter(|kind| kind.is_part())
        .map(|kind| (kind.chart_colour(), kind.title().to_owned(), sum(kind)))
        .collect();
    let rest = server.commands.iter().map(|row| row.residual.distribution.sum_ns.max(0));
    let title = field("server_split", "residual_ns").title.to_owned();
    parts.push((OTHER, title, rest.fold(0, i64::saturating_add)));
    parts
}

/// The largest parts, and the others as one.
fn bar(mut parts: Vec<Part>) -> Portions {
    parts.retain(|part| part.2 > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.2));
    let whole = parts.iter().map(|part| part.2).fold(0, i64::saturating_add);
    if parts.len() > PARTS_MAX {
        let rest = parts.split_off(PARTS_MAX - 1);
        let ns = rest.iter().map(|part| part.2).fold(0, i64::saturating_add);
        parts.push((OTHER, format!("{} others", rest.len()), ns));
    }
    let shown = parts.into_iter().map(|(colour, name, ns)| {
        (colour, name, ns as f64 / whole.max(1) as f64, format::duration(ns))
    });
    Portions {
        caption: String::new(),
        help: String::new(),
        whole: format::duration(whole),
        parts: shown.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_joined_and_shares_add_up() {
        let parts = (1..=10).map(|ns| (1, format!("part {ns}"), ns)).collect();
        let bar = bar(parts);
        assert_eq!(bar.parts.len(), PARTS_MAX);
        let names: Vec<_> = bar.parts.iter().map(|part| part.1.as_str()).collect();
        assert_eq!((names[0], names[PARTS_MAX - 1]), ("part 10", "4 others"));
        let sum: f64 = bar.parts.iter().map(|part| part.2).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}
