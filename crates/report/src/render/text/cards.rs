//! Findings for a terminal: one after the other, or a line for each.

use std::fmt;

use super::{indented, wrapped};
use crate::document::{FindingCard, FindingLine};
use crate::value::format::sanitized;

/// A finding; if `brief` without what it is based on.
pub fn write_card(
    out: &mut String,
    card: &FindingCard,
    number: usize,
    width: usize,
    brief: bool,
) -> fmt::Result {
    if let Some(text) = &card.text {
        wrapped(out, &format!("{number}. {}", text.head), width)?;
        let lines = if brief { &text.brief } else { &text.lines };
        return lines.iter().try_for_each(|line| indented(out, 3, "", line, width));
    }
    let cost = if card.cost.is_empty() { String::new() } else { format!(" ({})", card.cost) };
    wrapped(out, &format!("{number}. {}{cost}", card.title), width)?;
    indented(out, 3, "", &format!("{}.", card.what), width)?;
    for (title, lines) in &card.rows {
        let shown = if brief { usize::from(*title == "Do") } else { lines.len() };
        for line in lines.iter().take(shown) {
            indented(out, 3, "", &format!("{title}: {line}"), width)?;
        }
    }
    Ok(())
}

/// Findings, one after the other.
pub fn write_findings(out: &mut String, judged: &[FindingLine], width: usize) -> fmt::Result {
    for one in judged {
        let severity = one.severity.word();
        let words = format!("[{severity}] {}: {}", one.about, one.sentence);
        wrapped(out, &sanitized(&words), width)?;
    }
    Ok(())
}
