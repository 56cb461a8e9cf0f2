//! CPUs over time: a row for each, darker where interrupts and deferred work take more of its time.

use std::fmt::{self, Write};

use crate::document::{Drawing, TextOptions};
use crate::render::html::{escape, open};
use crate::value::{
    Format,
    format::{self, sanitized},
    ticks,
};

/// Steps of a strip's shade.
const SHADES: f64 = 10.0;

/// CPUs that a short text shows, the busiest.
const ROWS: usize = 8;
/// What CPUs did over time: a row for each, and a share for each bin.
#[derive(Clone, Debug)]
pub(crate) struct CpuStrip {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) bin_ns: i64,
    /// Part of the first bin that is before the beginning.
    pub(crate) before_ns: i64,
    /// The time from the beginning to the end; 0 without an axis.
    pub(crate) whole_ns: i64,
    /// NUMA nodes or sockets, and their CPUs.
    pub(crate) groups: Vec<(String, Vec<StripRow>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct StripRow {
    pub(crate) label: String,
    /// Stands next to it.
    pub(crate) words: String,
    /// From 0 to 1.
    pub(crate) shares: Vec<f64>,
}

impl Drawing for CpuStrip {
    fn svg(&self, out: &mut String) {
        write_svg(out, self);
    }

    fn text(&self, out: &mut String, options: &TextOptions) -> fmt::Result {
        write_text(out, self, options.columns(), !options.all)
    }

    fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// A row for each CPU, darker where interrupts and deferred work take more of its time.
fn write_svg(out: &mut String, chart: &CpuStrip) {
    open(out, &chart.caption, "share of the time", &chart.help);
    let rows = || chart.groups.iter().flat_map(|(_, rows)| rows);
    let bins = rows().map(|row| row.shares.len()).max().unwrap_or(0).max(1);
    // On the axis; bins can begin before it and end behind it.
    let before = chart.before_ns as f64;
    let at =
        |bin: usize| (chart.bin_ns as f64 * bin as f64 - before).clamp(0.0, chart.whole_ns as f64);
    let many = if rows().count() > 48 { " many" } else { "" };
    let _ = writeln!(out, "<div class=\"strip{many}\">");
    for (name, rows) in &chart.groups {
        if chart.groups.len() > 1 {
            let _ = writeln!(out, "<p>{}</p>", escape(name));
        }
        for row in rows {
            let mut shapes = String::new();
            let level = |share: f64| (share.clamp(0.0, 1.0) * SHADES).round() as u32;
            let mut begin = 0;
            for run in row.shares.chunk_by(|a, b| level(*a) == level(*b)) {
                let end = begin + run.len();
                let shade = run.first().map_or(0, |share| level(*share));
                if shade > 0 {
                    let mean = run.iter().sum::<f64>() / run.len() as f64;
                    let when = match chart.bin_ns {
                        0 => String::new(),
                        _ => format!("{} to {}: ", show_time(at(begin)), show_time(at(end))),
                    };
                    let _ = write!(
                        shapes,
                        "<rect x=\"{:.2}%\" width=\"{:.2}%\" height=\"100%\" opacity=\"{:.1}\"><title>{when}{}</title></rect>",
                        begin as f64 / bins as f64 * 100.0,
                        run.len() as f64 / bins as f64 * 100.0 + 0.02,
                        f64::from(shade) / SHADES,
                        format::share(mean)
                    );
                }
                begin = end;
            }
            let _ = writeln!(
                out,
                "<div class=\"row\"><span>{}</span><svg role=\"img\"><title>{}</title>{shapes}</svg><b>{}</b></div>",
                escape(&row.label),
                escape(&format!("{}: {}", row.label, row.words)),
                escape(&row.words)
            );
        }
    }
    let (whole, wide) = (chart.whole_ns as f64, chart.bin_ns as f64 * bins as f64);
    if whole <= 0.0 || wide <= 0.0 {
        out.push_str("</div></figure>\n");
        return;
    }
    out.push_str("<div class=\"row axis\"><span></span><div class=\"ticks\">");
    for tick in ticks::values(whole, Format::Duration).into_iter().filter(|tick| *tick <= whole) {
        let place = (tick + before) / wide * 100.0;
        let class = match place {
            0.0..3.0 => " class=\"begin\"",
            95.0.. => " class=\"end\"",
            _ => "",
        };
        let _ = write!(out, "<i{class} style=\"left:{place:.2}%\">{}</i>", show_time(tick));
    }
    out.push_str("</div><b></b></div>\n</div></figure>\n");
}

fn show_time(ns: f64) -> String {
    ticks::label(Format::Duration, ns, "")
}

/// A row of shades for each CPU; if `brief` only those that are ever busy.
fn write_text(out: &mut String, chart: &CpuStrip, width: usize, brief: bool) -> fmt::Result {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    let rows =
        chart.groups.iter().flat_map(|(group, rows)| rows.iter().map(move |row| (group, row)));
    let mut rows: Vec<_> = rows.collect();
    let all = rows.len();
    let most = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
    if brief {
        rows.retain(|(_, row)| most(&row.shares) >= 0.25);
        rows.truncate(ROWS);
        if rows.is_empty() {
            return Ok(());
        }
    }
    match chart.whole_ns {
        ..=0 => writeln!(out, "{}", chart.caption)?,
        whole => writeln!(out, "{}, {}", chart.caption, format::duration(whole))?,
    }
    let label = rows.iter().map(|(_, row)| row.label.chars().count()).max().unwrap_or(0);
    let words = rows.iter().map(|(_, row)| row.words.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label + words + 6).clamp(10, 72);
    let mut last = None;
    for (group, row) in &rows {
        if !brief && chart.groups.len() > 1 && last != Some(*group) {
            writeln!(out, "  {}", sanitized(group))?;
            last = Some(*group);
        }
        let line: String = (0..room.min(row.shares.len().max(1)))
            .map(|place| {
                let cells = room.min(row.shares.len().max(1));
                let from = place * row.shares.len() / cells;
                let to = ((place + 1) * row.shares.len() / cells).max(from + 1);
                let part = row.shares.get(from..to.min(row.shares.len())).unwrap_or(&[]);
                let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
                let shade = (mean * 4.0).ceil().clamp(0.0, 4.0) as usize;
                SHADES.get(shade).copied().unwrap_or(' ')
            })
            .collect();
        writeln!(out, "  {:>label$}  {line}  {:>words$}", sanitized(&row.label), row.words)?;
    }
    match all - rows.len() {
        0 => Ok(()),
        more => writeln!(out, "  … and {more} more"),
    }
}
