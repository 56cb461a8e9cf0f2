//! `/proc/interrupts`: how often each interrupt came to each CPU. Long lines may be wrapped, as terminals and mail do.
//!
//! `show_interrupts`, Linux `kernel/irq/proc.c`; architectures add rows with names.

use serde::{Deserialize, Serialize};

use super::{CPUS_MAX, Piece, command_line};
use crate::input::Damage;
use crate::input::lines::Lines;

/// Rows that are kept.
const ROWS_MAX: usize = 16_384;

/// Counts of interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    /// Numbers of the CPUs, in the order of the columns. Without the header: 0, 1, 2 ...
    pub cpus: Vec<u32>,
    pub rows: Vec<Interrupt>,
}

/// An interrupt with a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    pub number: u32,
    /// How often it came, by column.
    pub counts: Vec<u64>,
    /// Controller and kind, for example `IR-PCI-MSI 524288-edge`.
    pub controller: String,
    /// What the driver called it, for example `eth0-TxRx-3`.
    pub name: String,
}

pub(super) fn starts(line: &str) -> bool {
    is_header(line)
        || row_start(line).is_some_and(|(number, rest)| {
            number.parse::<u32>().is_ok() && rest.split_whitespace().next().is_some_and(is_number)
        })
}

/// Reads the header, which may be wrapped: numbers of the CPUs.
pub(super) fn header(lines: &mut Lines<'_>) -> Result<Vec<u32>, Damage> {
    let mut cpus = Vec::new();
    while let Some(line) = lines.peek().filter(|line| is_header(line)) {
        for word in line.split_whitespace() {
            let number = word.strip_prefix("CPU").and_then(|number| number.parse().ok());
            let number = number
                .ok_or_else(|| Damage::new(lines.number(), format!("`{word}` is not a CPU")))?;
            if cpus.len() >= CPUS_MAX {
                return Err(Damage::new(lines.number(), format!("more than {CPUS_MAX} CPUs")));
            }
            cpus.push(number);
        }
        lines.skip(1);
    }
    Ok(cpus)
}

pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), Damage> {
    let mut interrupts = Interrupts { cpus: header(lines)?, rows: Vec::new() };
    let has_header = !interrupts.cpus.is_empty();
    let mut joined = None;
    while let Some((start, rest)) = joined.or_else(|| lines.peek().and_then(row_start)) {
        let line = lines.number();
        let number = start.parse::<u32>().ok();
        if number.is_none() && !is_name(start) {
            break;
        }
        if joined.is_none() {
            lines.skip(1);
        }
        let (counts, text) = counts(rest, lines)?;
        let text = match split_joined(text) {
            Some((text, next)) => {
                joined = Some(next);
                text
            }
            None => {
                joined = None;
                text
            }
        };
        // Rows with a name (`NMI`, `LOC`) have a description; rows of errors have one count.
        let Some(number) = number else { continue };
        if has_header && counts.len() != interrupts.cpus.len() {
            return Err(Damage::new(
                line,
                format!(
                    "interrupt {number} has {} counts for {} CPUs",
                    counts.len(),
                    interrupts.cpus.len()
                ),
            ));
        }
        if interrupts.rows.len() >= ROWS_MAX {
            return Err(Damage::new(line, format!("more than {ROWS_MAX} interrupts")));
        }
        let (controller, name) = split_name(text);
        interrupts.rows.push(Interrupt { number, counts, controller, name });
    }
    if !has_header {
        let columns = interrupts.rows.iter().map(|row| row.counts.len()).max().unwrap_or(0);
        interrupts.cpus = (0..u32::try_from(columns).unwrap_or(u32::MAX)).collect();
    }
    if !interrupts.rows.is_empty() || has_header {
        pieces.push(Piece::Interrupts(interrupts));
    }
    Ok(())
}

/// The counts of a row, and the text after them; both may continue on the next lines.
fn counts<'a>(rest: &'a str, lines: &mut Lines<'a>) -> Result<(Vec<u64>, &'a str), Damage> {
    let mut counts = Vec::new();
    let mut text = rest;
    loop {
        while let Some((word, after)) = first_word(text) {
            match word.parse::<u64>() {
                Ok(count) if is_number(word) => counts.push(count),
                _ => break,
            }
            text = after;
        }
        text = text.trim();
        if counts.len() > CPUS_MAX {
            return Err(Damage::new(
                lines.number(),
                format!("more than {CPUS_MAX} counts of an interrupt"),
            ));
        }
        // The row is wrapped where its text is missing and the next line is neither a row nor empty.
        let next = lines.peek().filter(|line| {
            text.is_empty()
                && row_start(line).is_none()
                && !line.trim().is_empty()
                && command_line(line).is_none()
        });
        let is_continuation = |line: &str| {
            let first = line.split_whitespace().next().unwrap_or_default();
            is_number(first)
                || first.contains("MSI")
                || first.contains("APIC")
                || first.contains("GIC")
        };
        match next.filter(|line| is_continuation(line)) {
            Some(line) => {
                lines.skip(1);
                text = line;
            }
            None => return Ok((counts, text)),
        }
    }
}

fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    text.split_at_checked(end).filter(|(word, _)| !word.is_empty())
}

/// Splits `PCI-MSI 1-edge eth0-TxRx-0 293: 0 0`: a mail may join the end of a row and the start of the next one.
fn split_joined(text: &str) -> Option<(&str, (&str, &str))> {
    let mut rest = text;
    while let Some((word, after)) = first_word(rest) {
        if let Some(number) = word.strip_suffix(':').filter(|number| is_number(number)) {
            let end = text.len().checked_sub(after.len() + word.len())?;
            return Some((text.get(..end)?.trim(), (number, after)));
        }
        rest = after;
    }
    None
}

/// Controller and name: the name follows the word that says how the interrupt is triggered.
fn split_name(text: &str) -> (String, String) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_trigger = |word: &&str| {
        let word = word.to_ascii_lowercase();
        ["edge", "level", "fasteoi"]
            .iter()
            .any(|kind| word == *kind || word.ends_with(&format!("-{kind}")))
    };
    let split = words
        .iter()
        .position(is_trigger)
        .map_or(words.len().saturating_sub(1), |position| position + 1);
    let (controller, name) = words.split_at_checked(split).unwrap_or((&words, &[]));
    (controller.join(" "), name.join(" "))
}

fn is_header(line: &str) -> bool {
    let mut words = line.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| word.strip_prefix("CPU").is_some_and(is_number))
}

/// `34:   0  1 ...` or `LOC:  ...`
fn row_start(line: &str) -> Option<(&str, &str)> {
    let (start, rest) = line.trim_start().split_once(':')?;
    let is_word = !start.contains(char::is_whitespace);
    (is_word && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some((start, rest))
}

/// `NMI`, `LOC`, `IPI0`: the rows that architectures add.
fn is_name(start: &str) -> bool {
    (2..=8).contains(&start.len())
        && start.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit())
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|digit| digit.is_ascii_digit())
}
