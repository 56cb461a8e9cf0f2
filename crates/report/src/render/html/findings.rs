//! A finding in a page: cost, evidence, remedies, and what they would bring.

use std::fmt::Write;

use smbscope_analysis::explain::Finding;

use super::{charts, escape, histograms, plot};
use crate::answers::diagnosis::evidence;
use crate::answers::diagnosis::{cost, example, figure, gain, needed, owner, places};
use crate::value::format;

pub(super) fn finding(out: &mut String, found: &Finding, when: Option<&str>, is_open: bool) {
    let _ = write!(
        out,
        "<details class=\"finding\"{}><summary><span class=\"share\">{}</span><b>{}</b> <span class=\"cost\">{}</span>{}</summary>\n\
         <div class=\"evidence\"><div>\n<p>{}.</p>\n<dl>",
        if is_open { " open" } else { "" },
        format::share(found.share),
        escape(found.trouble.title()),
        escape(&cost(found)),
        meter(found.share),
        escape(&found.what),
    );
    let mut row = |title: &str, words: &[String]| {
        if !words.is_empty() {
            let _ = write!(out, "<dt>{title}</dt><dd>");
            for words in words {
                let _ = write!(out, "<span>{}</span>", escape(words));
            }
            out.push_str("</dd>");
        }
    };
    let when: Vec<_> = when.into_iter().map(str::to_owned).collect();
    row("When", &when);
    row("Responsible", &[owner(found)]);
    let remedies = found.remedies.iter().map(|one| format!("{}: {}", one.at, one.action));
    row("Do", &remedies.collect::<Vec<_>>());
    row("Effect", &found.gains.iter().map(gain).collect::<Vec<_>>());
    row("Where", &places(found, true));
    row("Needed", &needed(found).into_iter().collect::<Vec<_>>());
    let figures: Vec<_> = found.figures.iter().map(figure).collect();
    row("Figures", &figures);
    row("See", &found.examples.iter().map(example).collect::<Vec<_>>());
    row("Because", &[format!("{}.", found.because)]);
    out.push_str("</dl></div>\n<div>");
    if let Some(curve) = evidence::throughput(found) {
        plot::curve(out, &curve);
    }
    if let Some(times) = evidence::times(found) {
        histograms::times(out, &times);
    }
    if let Some(timeline) = evidence::timeline(found) {
        charts::timeline(out, &timeline);
    }
    if let Some(places) = evidence::places(found) {
        charts::stacked(out, &places);
    }
    out.push_str("</div></div></details>\n");
}

/// A share as a bar.
fn meter(share: f64) -> String {
    let width = (100.0 * share).clamp(0.0, 100.0);
    format!(
        "<svg class=\"meter\" role=\"img\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\"><title>{}</title>\
         <rect width=\"{width:.1}\" height=\"4\"/></svg>",
        format::share(share)
    )
}
