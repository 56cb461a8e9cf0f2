//! A document as one HTML file that needs no network and no script: charts are inline SVG, tables are
//! complete. Where scripts run, tables sort, fold and filter, and charts show their values. All text is
//! escaped; names and paths come from strangers.

mod areas;
mod cards;
mod charts;
mod histograms;
mod plot;
mod tables;

use std::fmt::Write;

use crate::document::{Block, Chart, Document, Section};
use crate::value::{
    Clock,
    format::{sanitized, unbroken},
};

pub(crate) use charts::{legend, open};

/// The hash of the page's script, the only one that a browser runs in it (Content Security Policy, section 2.3.1).
const SCRIPT_HASH: &str = "sha256-8OouEb6S+LXgSP3m58jRkxaZkL8+6o3uSyeTLI7Q4sk=";

/// The rules of every page.
pub const STYLE: &str = concat!(include_str!("html/style.css"), include_str!("html/charts.css"));

/// The script of every page, which sorts its tables and shows the values of its charts.
pub const SCRIPT: &str = include_str!("html/script.js");

/// The head of a document and some of its sections, for a page that has [`STYLE`] and [`SCRIPT`].
pub(crate) fn fragment(document: &Document, sections: &[&str]) -> String {
    let mut out = String::new();
    head(&mut out, document);
    for section in document.sections.iter().filter(|section| sections.contains(&section.id)) {
        write_section(&mut out, section, document);
    }
    out
}

/// Any document as a page.
pub(crate) fn page(document: &Document) -> String {
    let mut out = String::with_capacity(256 * 1024);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'\">\n\
         <title>smbscope: {}</title>\n<style>\n{STYLE}{}{}</style>\n</head>\n<body data-offset=\"{}\">\n",
        escape(&document.title),
        include_str!("html/cores.css"),
        style_of(document),
        document.clock.offset_s()
    );
    contents(&mut out, document);
    out.push_str("<main>\n");
    head(&mut out, document);
    for section in &document.sections {
        write_section(&mut out, section, document);
    }
    let _ = write!(
        out,
        "<footer><p>smbscope {} · schema version {} · times in {} · read from {}</p></footer>\n</main>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(&document.version),
        document.schema,
        escape(document.clock.zone()),
        escape(&document.title)
    );
    out
}

/// Rules that only some documents need, each once.
fn style_of(document: &Document) -> String {
    let mut styles: Vec<&str> = Vec::new();
    for block in document.sections.iter().flat_map(|section| &section.blocks) {
        if let Block::Drawing(drawing) = block
            && !styles.contains(&drawing.style())
        {
            styles.push(drawing.style());
        }
    }
    styles.concat()
}

/// The table of contents, which stays visible.
fn contents(out: &mut String, document: &Document) {
    out.push_str(
        "<nav aria-label=\"Sections\"><p>smbscope</p><ul><li><a href=\"#top\">Summary</a></li>",
    );
    for section in &document.sections {
        let class = if section.is_folded() { " class=\"minor\"" } else { "" };
        let _ = write!(
            out,
            "<li{class}><a href=\"#{}\">{}</a></li>",
            section.id,
            escape(section.title)
        );
    }
    out.push_str("</ul></nav>\n");
}

/// The answer: the verdict, its reasons, and the numbers.
fn head(out: &mut String, document: &Document) {
    let verdict = &document.verdict;
    let _ = write!(
        out,
        "<header id=\"top\">\n<p class=\"brand\"><b>{}</b> {} · {}</p>\n\
         <div class=\"verdict {}\"><h1>{}.</h1>",
        document.brand,
        escape(&document.title),
        prose(&document.span),
        verdict.tone.class(),
        prose(&verdict.sentence)
    );
    for reason in &verdict.reasons {
        let _ = write!(out, "<p>{}</p>", prose(reason));
    }
    out.push_str("</div>\n");
    if !document.tiles.is_empty() {
        out.push_str("<dl class=\"tiles\">");
    }
    for tile in &document.tiles {
        let _ = write!(
            out,
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"aside\">{}</dd></div>",
            escape(&tile.title),
            prose(&tile.value),
            prose(&tile.note)
        );
    }
    if !document.tiles.is_empty() {
        out.push_str("</dl>\n");
    }
    write_blocks(out, &document.notices, document);
    out.push_str("</header>\n");
}

fn write_section(out: &mut String, section: &Section, document: &Document) {
    let (id, title, help) = (section.id, escape(section.title), escape(section.help));
    if section.is_folded() {
        let _ = writeln!(
            out,
            "<section id=\"{id}\" class=\"folded\"><details><summary><h2>{title}</h2></summary>\n<p class=\"lead\">{help}</p>"
        );
    } else {
        let _ =
            writeln!(out, "<section id=\"{id}\">\n<h2>{title}</h2>\n<p class=\"lead\">{help}</p>");
    }
    write_blocks(out, &section.blocks, document);
    out.push_str(if section.is_folded() { "</details></section>\n" } else { "</section>\n" });
}

/// What stands side by side where there is room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grid {
    None,
    Facts,
    Charts,
}

fn write_blocks(out: &mut String, blocks: &[Block], document: &Document) {
    let mut grid = Grid::None;
    for block in blocks {
        let wanted = match block {
            Block::Facts(_) => Grid::Facts,
            Block::Chart(Chart::Lines(_) | Chart::Curve(_)) => Grid::Charts,
            _ => Grid::None,
        };
        if wanted != grid {
            out.push_str(if grid == Grid::None { "" } else { "</div>\n" });
            out.push_str(match wanted {
                Grid::None => "",
                Grid::Facts => "<div class=\"grid\">\n",
                Grid::Charts => "<div class=\"grid charts\">\n",
            });
            grid = wanted;
        }
        write_block(out, block, document);
    }
    out.push_str(if grid == Grid::None { "" } else { "</div>\n" });
}

fn write_block(out: &mut String, block: &Block, document: &Document) {
    match block {
        Block::Table(table) => tables::table(out, table, document),
        Block::Facts(facts) => tables::facts(out, facts, &document.clock),
        Block::Chart(chart) => write_chart(out, chart, &document.clock),
        Block::Finding(card) => cards::card(out, card, &document.clock),
        Block::Findings(lines) => cards::lines(out, lines),
        Block::Steps(steps) => cards::steps(out, steps),
        Block::Drawing(drawing) => drawing.svg(out),
        Block::Note(note) => {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", prose(note));
        }
        Block::Warn(note) => {
            let _ = writeln!(out, "<p class=\"warn\">{}</p>", prose(note));
        }
        Block::Fold(fold) => {
            let _ =
                writeln!(out, "<details class=\"fold\"><summary>{}</summary>", prose(&fold.title));
            write_blocks(out, &fold.blocks, document);
            out.push_str("</details>\n");
        }
    }
}

fn write_chart(out: &mut String, chart: &Chart, clock: &Clock) {
    match chart {
        Chart::Areas(chart) => areas::areas(out, chart, clock),
        Chart::Changes(changes) => charts::changes(out, changes),
        Chart::Curve(curve) => plot::curve(out, curve),
        Chart::Histograms(chart) => histograms::histograms(out, chart),
        Chart::Lines(lines) => plot::lines(out, lines, clock),
        Chart::Portions(portions) => charts::portions(out, portions),
        Chart::Stacked(bars) => charts::stacked(out, bars),
        Chart::Timeline(timeline) => charts::timeline(out, timeline),
        Chart::Times(times) => histograms::times(out, times),
    }
}

/// A sentence whose numbers stay with their units at the end of a line.
pub(crate) fn prose(text: &str) -> String {
    escape(&unbroken(text))
}

/// Text made harmless, and then safe in elements and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let text = sanitized(text);
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(
            escape("<a href='x' title=\"y\">&\u{202e}\u{7}"),
            "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;\\u{202e}\\u{7}"
        );
    }

    /// The page's policy allows this script only.
    #[test]
    fn the_hash_is_that_of_the_script() {
        use sha2::{Digest as _, Sha256};
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let script = format!("\n{SCRIPT}");
        let hash = Sha256::digest(script.as_bytes());
        // RFC 4648: 32 bytes are ten groups of three and one of two.
        let mut text = String::new();
        for group in hash.chunks(3) {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - group.len()));
            for place in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63] as char;
                text.push(if place > group.len() { '=' } else { digit });
            }
        }
        assert_eq!(SCRIPT_HASH, format!("sha256-{text}"), "set SCRIPT_HASH to the second");
    }
}
