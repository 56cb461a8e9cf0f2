//! The screen: header, table with a bar for each row, legend and keys. Pure drawing of what is given.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Block, Clear, Paragraph};
use smbscope_analysis::live::{Row, Snapshot, Sort, Span};
use smbscope_report::format;
use unicode_width::UnicodeWidthStr;

use super::state::State;
use super::{numbers, parts};
use crate::pipeline::record::source::Received;

/// Lines above the rows and below them.
const ABOVE: u16 = 5;
const BELOW: u16 = 2;
/// Least width of names and of bars.
const NAME_MIN: usize = 14;
const BAR_MIN: usize = 14;

/// Cells of [`numbers::cells`]: width, and what orders by them.
const COLUMNS: [(usize, Sort); 9] = [
    (8, Sort::Operations),
    (10, Sort::Bytes),
    (10, Sort::Bytes),
    (9, Sort::Errors),
    (9, Sort::P50),
    (9, Sort::P95),
    (9, Sort::P99),
    (9, Sort::Max),
    (8, Sort::Time),
];
/// The columns in the order in which they get room.
const WANTED: [usize; 9] = [0, 4, 6, 8, 1, 2, 3, 5, 7];

/// Information that is shown next to the numbers.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// What is looked at.
    pub what: String,
    /// Since when.
    pub elapsed: Duration,
    /// What was seen since.
    pub seen: Received,
    /// The folder that is recorded to, and since when.
    pub recording: Option<(String, Duration)>,
    /// What happened last.
    pub message: String,
    /// Whether it is bad.
    pub is_bad: bool,
}

/// Everything that is shown.
pub struct Shown<'a> {
    /// What the user chose.
    pub state: &'a State,
    /// Information that is shown next to the numbers.
    pub status: &'a Status,
    /// Of what.
    pub snapshot: &'a Snapshot,
    /// The rows that are wanted, in order.
    pub rows: &'a [Row],
    /// Whether colours may be used.
    pub colour: bool,
}

/// How many rows a screen of that height shows.
pub fn page(height: u16) -> usize {
    usize::from(height.saturating_sub(ABOVE + BELOW))
}

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, shown: &Shown<'_>) {
    let area = frame.area();
    let [head, table, foot] = Layout::vertical([
        Constraint::Length(ABOVE - 1),
        Constraint::Fill(1),
        Constraint::Length(BELOW),
    ])
    .areas(area);
    let width = usize::from(area.width);
    frame.render_widget(Paragraph::new(header(shown, width)), head);
    frame.render_widget(Paragraph::new(rows(shown, table)), table);
    frame.render_widget(Paragraph::new(footer(shown, width)), foot);
    if shown.state.help {
        help(frame, area);
    }
}

fn header<'a>(shown: &Shown<'a>, width: usize) -> Vec<Line<'a>> {
    let Shown { state, status, snapshot, .. } = shown;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let seconds = status.elapsed.as_secs();
    let elapsed = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let span = format::duration(snapshot.span_ns);
    let mut first = vec![
        vec![Piece::styled("smbscope top", bold)],
        vec![
            Piece::styled(format!("  by {}", state.key.name()), bold),
            Piece::raw(match state.span {
                _ if snapshot.span_ns == 0 => String::new(),
                Span::Slot => format!(", last {span}"),
                Span::Window => format!(", last {span} together"),
            }),
        ],
    ];
    if state.paused {
        let paused = Piece::styled(" PAUSED ", bold.add_modifier(Modifier::REVERSED));
        first.push(vec![Piece::raw("  "), paused]);
    }
    first.push(vec![Piece::raw(format!("  {elapsed}"))]);
    let total = &snapshot.total;
    let per_second = |count| numbers::rate(count, snapshot.span_ns);
    let bytes = |count| match count {
        0 => "0 B".to_owned(),
        count => numbers::byte_rate(count, snapshot.span_ns),
    };
    let operations = format!("{} operations/s", per_second(total.operations));
    let errors = format!("{} errors/s", per_second(total.errors));
    let mut second = vec![
        vec![Piece::styled(operations, bold)],
        vec![Piece::raw(", "), alarm(errors, total.errors > 0, Color::Yellow, shown)],
    ];
    let turnaround = &total.turnaround;
    if let (Some(p50), Some(p99)) = (turnaround.p50_ns, turnaround.p99_ns) {
        let (p50, p99) = (format::duration(p50), format::duration(p99));
        second.push(vec![Piece::raw(format!(", turnaround p50 {p50}, p99 {p99}"))]);
    }
    let [read, written] = [total.read_bytes, total.written_bytes].map(bytes);
    second.push(vec![Piece::raw(format!(", {read}/s read"))]);
    second.push(vec![Piece::raw(format!(", {written}/s written"))]);
    let mut third = Vec::new();
    if let Some((folder, time)) = &status.recording {
        let text = format!(" RECORDING {} s ", time.as_secs());
        third.push(vec![alarm(text, true, Color::Red, shown)]);
        third.push(vec![Piece::raw(format!(" to {folder}  "))]);
    }
    let dropped = status.seen.dropped();
    let text = format!("{} dropped", format::count(dropped));
    third.push(vec![alarm(text, dropped > 0, Color::Red, shown)]);
    if snapshot.late > 0 {
        let text = format!("{} late", format::count(snapshot.late));
        third.push(vec![Piece::raw(", "), alarm(text, true, Color::Yellow, shown)]);
    }
    third.push(vec![Piece::raw(format!(", of {}", status.seen.text()))]);
    // The rest may be cut: what is looked at stays the same.
    let mut first = fitting(first, width);
    first.push_span(Piece::raw(format!("  {}", status.what)));
    vec![first, fitting(second, width), fitting(third, width), prompt(shown)]
}

/// As many groups as have room: half a number would be another one.
fn fitting<'a>(groups: Vec<Vec<Piece<'a>>>, width: usize) -> Line<'a> {
    let mut room = width;
    let mut line = Line::default();
    for group in groups {
        let wide = group.iter().map(Piece::width).sum();
        let Some(left) = room.checked_sub(wide) else { break };
        room = left;
        line.extend(group);
    }
    line
}

/// The filter while it is typed or holds, else what happened last.
fn prompt<'a>(shown: &Shown<'a>) -> Line<'a> {
    let Shown { state, status, .. } = shown;
    if state.typing {
        return Line::raw(format!(
            "/{}▏ (Enter keeps, Esc clears)",
            format::sanitized(&state.filter)
        ));
    }
    let mut pieces = Vec::new();
    if !state.filter.is_empty() {
        let filter = format::sanitized(&state.filter);
        pieces.push(Piece::raw(format!("only names with \"{filter}\"  ")));
    }
    if !status.message.is_empty() {
        pieces.push(alarm(format::sanitized(&status.message), status.is_bad, Color::Red, shown));
    }
    Line::from(pieces)
}

/// Text that stands out where something is wrong, with colour or without.
fn alarm<'a>(text: String, is_wrong: bool, colour: Color, shown: &Shown<'_>) -> Piece<'a> {
    let style = match (is_wrong, shown.colour) {
        (false, _) => Style::new(),
        (true, true) => Style::new().fg(colour).add_modifier(Modifier::BOLD),
        (true, false) => Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED),
    };
    Piece::styled(text, style)
}

/// Which columns have room, and the widths of name and bar.
fn layout(width: usize) -> (Vec<usize>, usize, usize) {
    let mut room = width.saturating_sub(NAME_MIN + BAR_MIN + 1);
    let mut columns = Vec::new();
    for column in WANTED {
        let Some((width, _)) = COLUMNS.get(column) else { continue };
        if room > *width {
            room -= width + 1;
            columns.push(column);
        }
    }
    columns.sort_unstable();
    let name = NAME_MIN + room / 2;
    (columns, name, BAR_MIN + room - room / 2)
}

fn rows<'a>(shown: &Shown<'a>, area: Rect) -> Vec<Line<'a>> {
    let (columns, name_width, bar_width) = layout(usize::from(area.width));
    let Shown { state, snapshot, .. } = shown;
    let mark = |title: &str, sort| {
        if state.sort == sort {
            format!("{title}{}", if state.reverse { '▲' } else { '▼' })
        } else {
            title.to_owned()
        }
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut title = padded(&mark(state.key.name(), Sort::Name), name_width);
    for &column in &columns {
        let (Some((width, sort)), Some(text)) = (COLUMNS.get(column), numbers::TITLES.get(column))
        else {
            continue;
        };
        // Two columns order by the same: one of them says so.
        let text = if column == 2 { (*text).to_owned() } else { mark(text, *sort) };
        title.push_str(&format!(" {text:>width$}"));
    }
    title.push_str(" Where the time goes");
    let mut lines = vec![Line::styled(title, bold)];
    let total_ns = snapshot.total.turnaround.sum_ns;
    let page = usize::from(area.height.saturating_sub(1));
    for row in shown.rows.iter().skip(state.offset).take(page) {
        let name = format::shortened(&numbers::name(row, state.key), name_width);
        let mut text = padded(&name, name_width);
        let cells = numbers::cells(row, snapshot.span_ns, total_ns);
        for &column in &columns {
            if let (Some((width, _)), Some(cell)) = (COLUMNS.get(column), cells.get(column)) {
                text.push_str(&format!(" {cell:>width$}"));
            }
        }
        text.push(' ');
        let mut pieces = vec![Piece::raw(text)];
        for (part, count) in parts::cells(row, bar_width) {
            let letters = parts::letter(part).0.to_string().repeat(count);
            pieces.push(if shown.colour {
                let style = Style::new().fg(Color::Black).bg(parts::colour(part));
                Piece::styled(letters, style)
            } else {
                Piece::raw(letters)
            });
        }
        lines.push(Line::from(pieces));
    }
    if shown.rows.is_empty() {
        let what = match (snapshot.span_ns, state.filter.is_empty()) {
            (0, _) => "waiting for the first interval to end",
            (_, true) => "no operations",
            (_, false) => "no operations with such a name",
        };
        lines.push(Line::raw(what));
    }
    lines
}

/// As wide as that: what is too long was cut before, but wide characters may still be.
fn padded(text: &str, width: usize) -> String {
    let mut padded = text.to_owned();
    while padded.width() > width && padded.pop().is_some() {}
    padded.extend(std::iter::repeat_n(' ', width.saturating_sub(padded.width())));
    padded
}

fn footer<'a>(shown: &Shown<'a>, width: usize) -> Vec<Line<'a>> {
    let mut legend = Vec::new();
    for (part, _) in parts::shares(&shown.snapshot.total) {
        let (letter, words) = parts::letter(part);
        let style = if shown.colour {
            Style::new().fg(Color::Black).bg(parts::colour(part))
        } else {
            Style::new().add_modifier(Modifier::BOLD)
        };
        let letter = Piece::styled(letter.to_string(), style);
        legend.push(vec![letter, Piece::raw(format!(" {words}  "))]);
    }
    let keys = [
        "? help  ",
        "q quit  ",
        "1-6 b group  ",
        "< > sort  ",
        "/ filter  ",
        "R record  ",
        "space pause  ",
        "w window  ",
        "r reverse",
    ];
    let keys = keys.map(|key| vec![Piece::raw(key)]).to_vec();
    vec![fitting(legend, width), fitting(keys, width)]
}

const HELP: &str = "\
1 to 6   by command, share, client, file, user, process
b        the next of these
< >  s   order by the column before, behind
r        the other way round
/        only names with this text; Esc clears it
w        the last ten intervals together, or the last one
space p  stand still; operations are counted on
R        begin or end a recording in a folder
arrows   scroll, also PgUp, PgDn, Home, End
q Ctrl-C end

In a bar: > request, Q queue, c verify and decrypt, p parse,
P processing, F file system, w I/O wait, I I/O, f flush,
L locks, C sign and encrypt, s send, < reply, ? unexplained; of
an interface alone S server, N network, T turnaround.
Late are operations that came after their interval was shown,
because smbscope got too little of the CPU.
Turnaround is the time from the request's last byte to the
reply's first. Time is each row's part of all turnaround. What
waits by design (notifications, blocked locks) is not in it.";

fn help(frame: &mut Frame<'_>, area: Rect) {
    let width = 66.min(area.width);
    let height = (HELP.lines().count() as u16 + 2).min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" Keys (any key goes back) ");
    frame.render_widget(Paragraph::new(HELP).block(block), place);
}

#[cfg(test)]
mod tests;
