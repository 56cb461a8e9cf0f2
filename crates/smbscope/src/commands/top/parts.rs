//! How the parts of time are shown: a letter and a colour each, so that a bar can be read without
//! colour too.

use ratatui::style::Color;
use smbscope_analysis::live::{Part, Row};

/// The letter in a bar, the words of the legend.
pub fn letter(part: Part) -> (char, &'static str) {
    match part {
        Part::RequestTransfer => ('>', "request"),
        Part::Slice(kind) => kind.legend(),
        Part::Unexplained => ('?', "unexplained"),
        Part::Server => ('S', "server"),
        Part::Network => ('N', "network"),
        Part::Turnaround => ('T', "turnaround"),
        Part::ResponseTransfer => ('<', "reply"),
    }
}

/// The colour behind the letter: neighbours differ, kin are alike.
pub fn colour(part: Part) -> Color {
    match part {
        Part::RequestTransfer | Part::ResponseTransfer => Color::DarkGray,
        Part::Slice(kind) => kind.terminal_colour().parse().unwrap_or(Color::Gray),
        Part::Unexplained => Color::Gray,
        Part::Server => Color::Green,
        Part::Network => Color::LightYellow,
        Part::Turnaround => Color::Blue,
    }
}

/// The parts of a row's time that there are, each with its share of the whole. Estimates below zero
/// are nothing that could be shown.
pub fn shares(row: &Row) -> Vec<(Part, f64)> {
    let parts = Part::all().map(|part| (part, row.part_ns(part).max(0) as f64));
    let parts: Vec<_> = parts.filter(|(_, ns)| *ns > 0.0).collect();
    let sum: f64 = parts.iter().map(|(_, ns)| ns).sum();
    parts.into_iter().map(|(part, ns)| (part, ns / sum)).collect()
}

/// A bar of that width: how many cells each part has. Cells go to the parts in whose stretch their
/// middle lies, so that all together fill it.
pub fn cells(row: &Row, width: usize) -> Vec<(Part, usize)> {
    let mut end = 0.0;
    let mut used = 0;
    let mut cells = Vec::new();
    for (part, share) in shares(row) {
        end += share * width as f64;
        let until = (end.round() as usize).min(width);
        if until > used {
            cells.push((part, until - used));
            used = until;
        }
    }
    cells
}

/// The largest parts in words, for a printed table.
pub fn words(row: &Row) -> String {
    let mut shares = shares(row);
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = shares.iter().take(4).filter(|(_, share)| *share >= 0.005);
    let words = words.map(|(part, share)| format!("{} {:.0} %", letter(*part).1, share * 100.0));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_tables::slice::Kind;

    #[test]
    fn each_kind_of_slice_has_a_colour_that_terminals_have() {
        for kind in Kind::ALL {
            assert!(kind.terminal_colour().parse::<Color>().is_ok(), "{}", kind.name());
        }
    }
}
