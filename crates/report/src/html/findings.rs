//! The diagnosis at the top of the page: the findings that explain 5 % or more, the first ones unfolded.

use std::fmt::Write;

use smbscope_analysis::explain::{Diagnosis, Finding};

use super::escape;
use crate::format;
use crate::pages::findings::{
    SHOWN, example, figure, gain, headline, places, reported, verdict, when,
};

/// Place that links go to.
pub(super) const ID: &str = "findings";
/// Its heading.
pub(super) const TITLE: &str = "What makes it slow";

/// `of_run` where operations of all phases of a load run are in them.
pub(super) fn findings(out: &mut String, diagnosis: &Diagnosis, of_run: bool) {
    let what = match of_run {
        true => " Of the whole run, with warm-up, cool-down and logons.",
        false => "",
    };
    let _ = write!(
        out,
        "<section id=\"{ID}\">\n<h2>{TITLE}</h2>\n<p class=\"lead\">Most costly first: the share of all time in \
         which clients waited or paused. Findings can overlap.{what} docs/method/findings.md says how each is \
         found.</p>\n"
    );
    if let Some(words) = verdict(diagnosis) {
        let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(&words));
    }
    let told = reported(diagnosis);
    if !told.is_empty() {
        out.push_str("<ol class=\"findings\">\n");
        for (place, found) in told.iter().enumerate() {
            one(out, found, when(found, &diagnosis.whole), place < SHOWN);
        }
        out.push_str("</ol>\n");
    }
    for note in &diagnosis.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(&note.what));
    }
    out.push_str("</section>\n");
}

fn one(out: &mut String, found: &Finding, when: Option<String>, is_open: bool) {
    let _ = write!(
        out,
        "<li><details{}><summary><b>{}</b> <span class=\"cost\">{}</span>{}</summary>\n<p>{}.</p>\n<dl>",
        if is_open { " open" } else { "" },
        escape(found.trouble.title()),
        escape(&headline(found)),
        meter(found.share),
        escape(&found.what),
    );
    let mut row = |title: &str, words: &[String]| {
        if !words.is_empty() {
            let words: Vec<_> = words.iter().map(|words| escape(words)).collect();
            let _ = write!(out, "<dt>{title}</dt><dd>{}</dd>", words.join("<br>"));
        }
    };
    let figures: Vec<_> = found.figures.iter().map(figure).collect();
    row("Figures", &figures);
    row("When", when.as_slice());
    row("Where", &places(found, true));
    row("See", &found.examples.iter().map(example).collect::<Vec<_>>());
    row("Because", &[format!("{}.", found.because)]);
    let remedies = found.remedies.iter().map(|one| format!("{}: {}", one.at, one.action));
    row("Do", &remedies.collect::<Vec<_>>());
    row("That brings", &found.gains.iter().map(gain).collect::<Vec<_>>());
    out.push_str("</dl>\n</details></li>\n");
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
