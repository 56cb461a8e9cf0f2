//! The stages of a move as a checklist. Commands are never folded.

use std::fmt::{self, Write};

use crate::document::{Drawing, TextOptions};
use crate::render::{
    html::escape,
    text::{indented, wrapped},
};
use crate::value::format::sanitized;

/// The stages in their order.
#[derive(Clone, Debug)]
pub(crate) struct StageChecklist(pub(crate) Vec<StageCard>);

/// A stage of a checklist.
#[derive(Clone, Debug)]
pub(crate) struct StageCard {
    pub(crate) number: usize,
    /// Its name on the command line.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) why: String,
    /// How far it is, if the move has begun.
    pub(crate) status: Option<String>,
    pub(crate) is_done: bool,
    /// Whether users notice it.
    pub(crate) is_noticed: bool,
    /// Who, how long, what users notice, the wait, the gate.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// What must be true before.
    pub(crate) requires: Vec<String>,
    pub(crate) steps: Vec<StepCard>,
    pub(crate) undo: Vec<StepCard>,
    pub(crate) undo_note: String,
}

/// A step with its alternatives.
#[derive(Clone, Debug)]
pub(crate) struct StepCard {
    pub(crate) does: String,
    /// Where it runs, unless that is the administrator's machine.
    pub(crate) place: Option<String>,
    pub(crate) choices: Vec<Choice>,
    /// What shows that it worked.
    pub(crate) shows: String,
}

/// Lines of one tool.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) tool: &'static str,
    pub(crate) lines: Vec<String>,
    pub(crate) note: String,
}

impl Drawing for StageChecklist {
    fn svg(&self, out: &mut String) {
        write_svg(out, &self.0);
    }

    fn text(&self, out: &mut String, options: &TextOptions) -> fmt::Result {
        if options.all { write_text(out, &self.0, options.columns()) } else { Ok(()) }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn style(&self) -> &'static str {
        include_str!("namespace.css")
    }
}

/// Stages as a checklist.
fn write_svg(out: &mut String, stages: &[StageCard]) {
    out.push_str("<ol class=\"stages\">\n");
    for stage in stages {
        let done = if stage.is_done { " done" } else { "" };
        let _ = write!(
            out,
            "<li id=\"stage-{}\" class=\"stage{done}\"><h3><b>{}</b> {}",
            escape(&stage.name),
            stage.number,
            escape(&stage.title)
        );
        let _ = write!(out, " <code>{}</code>", escape(&stage.name));
        if let Some(status) = &stage.status {
            let _ = write!(out, " <span class=\"status\">{}</span>", escape(status));
        }
        let _ = writeln!(
            out,
            "</h3>\n<p class=\"why\">{}</p>\n<dl class=\"about\">",
            escape(&stage.why)
        );
        for (title, value) in &stage.facts {
            let class =
                if *title == "Users" && stage.is_noticed { " class=\"noticed\"" } else { "" };
            let _ = writeln!(out, "<dt>{title}</dt><dd{class}>{}</dd>", escape(value));
        }
        out.push_str("</dl>\n");
        if !stage.requires.is_empty() {
            out.push_str("<p class=\"before\">Before it begins:</p><ul class=\"checks\">");
            for one in &stage.requires {
                checkbox(out, one);
            }
            out.push_str("</ul>\n");
        }
        steps(out, &stage.steps, "checks steps");
        if !stage.undo.is_empty() || !stage.undo_note.is_empty() {
            let _ =
                write!(out, "<div class=\"undo\"><p><b>Undo</b> {}</p>", escape(&stage.undo_note));
            steps(out, &stage.undo, "checks steps");
            out.push_str("</div>");
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol>\n");
}

fn checkbox(out: &mut String, text: &str) {
    let _ = write!(
        out,
        "<li><label><input type=\"checkbox\"> <span>{}</span></label></li>",
        escape(text)
    );
}

fn steps(out: &mut String, steps: &[StepCard], class: &str) {
    if steps.is_empty() {
        return;
    }
    let _ = writeln!(out, "<ul class=\"{class}\">");
    for step in steps {
        let _ = write!(
            out,
            "<li><label><input type=\"checkbox\"> <span>{}</span></label>",
            escape(&step.does)
        );
        if let Some(place) = &step.place {
            let _ = write!(out, " <span class=\"place\">on {}</span>", escape(place));
        }
        out.push_str("<dl>");
        for choice in &step.choices {
            let lines: Vec<_> = choice.lines.iter().map(|line| escape(line)).collect();
            let _ = write!(
                out,
                "<dt>{}</dt><dd><div class=\"copy\"><pre tabindex=\"0\"><code>{}</code></pre></div>",
                choice.tool,
                lines.join("\n")
            );
            if !choice.note.is_empty() {
                let _ = write!(out, "<span class=\"expected\">{}</span>", escape(&choice.note));
            }
            out.push_str("</dd>");
        }
        if !step.shows.is_empty() {
            let _ = write!(out, "<dt>Shows</dt><dd class=\"shows\">{}</dd>", escape(&step.shows));
        }
        out.push_str("</dl></li>\n");
    }
    out.push_str("</ul>\n");
}

/// The stages with their commands.
fn write_text(out: &mut String, stages: &[StageCard], width: usize) -> fmt::Result {
    for stage in stages {
        let status = stage.status.as_ref().map(|status| format!(" [{status}]"));
        let title = format!(
            "{}. {} ({}){}",
            stage.number,
            stage.title,
            stage.name,
            status.unwrap_or_default()
        );
        wrapped(out, &sanitized(&title), width)?;
        indented(out, 3, "", &stage.why, width)?;
        for (title, value) in &stage.facts {
            indented(out, 3, &format!("{title}: "), value, width)?;
        }
        for one in &stage.requires {
            indented(out, 3, "before: ", one, width)?;
        }
        for step in &stage.steps {
            write_step(out, step, 3, width)?;
        }
        if !stage.undo_note.is_empty() || !stage.undo.is_empty() {
            indented(out, 3, "Undo: ", &stage.undo_note, width)?;
        }
        for step in &stage.undo {
            write_step(out, step, 6, width)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_step(out: &mut String, step: &StepCard, indent: usize, width: usize) -> fmt::Result {
    let place = step.place.as_ref().map(|place| format!(" (on {place})")).unwrap_or_default();
    indented(out, indent, "[ ] ", &format!("{}{place}", step.does), width)?;
    let inner = indent + 4;
    for choice in &step.choices {
        writeln!(out, "{:inner$}{}:", "", choice.tool)?;
        for line in &choice.lines {
            writeln!(out, "{:inner$}  {}", "", sanitized(line))?;
        }
        if !choice.note.is_empty() {
            indented(out, inner + 2, "(", &format!("{})", choice.note), width)?;
        }
    }
    if !step.shows.is_empty() {
        indented(out, inner, "shows: ", &step.shows, width)?;
    }
    Ok(())
}
