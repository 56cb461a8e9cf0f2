//! The drawing and the stages of a namespace's move for a terminal. Commands are never folded.

use std::fmt::{self, Write};

use smbscope_plan::cores::findings::Severity;

use super::wrapped;
use crate::document::{Judgement, NamespaceMap, Role, StageCard, StepCard};
use crate::value::format;
use crate::value::format::{harmless, shortened};

/// Links that are listed.
const LINKS: usize = 40;

/// Findings, one after the other.
pub fn write_judgements(out: &mut String, judged: &[Judgement], width: usize) -> fmt::Result {
    for one in judged {
        let severity = match one.severity {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        };
        let words = format!("[{severity}] {}: {}", one.about, one.sentence);
        wrapped(out, &harmless(&words), width)?;
    }
    Ok(())
}

/// The namespace as an outline.
pub fn write_map(out: &mut String, map: &NamespaceMap, width: usize) -> fmt::Result {
    writeln!(out, "{}", shortened(&harmless(&map.root), width))?;
    for server in &map.servers {
        let role = match server.role {
            Role::Joins => "joins",
            Role::Leaves => "leaves",
            Role::Stays => "stays",
        };
        let offline = if server.is_offline { ", offline" } else { "" };
        writeln!(out, "  server  {} ({role}{offline})", harmless(&server.name))?;
    }
    for link in map.links.iter().take(LINKS) {
        let names = link.to.iter().filter_map(|(place, is_offline)| {
            let name = harmless(&map.targets.get(*place)?.name);
            Some(if *is_offline { format!("{name} (offline)") } else { name })
        });
        let mut names: Vec<_> = names.collect();
        if link.undrawn > 0 {
            names.push(format!("{} more", format::count(link.undrawn)));
        }
        let many = match link.links {
            1 => String::new(),
            count => format!(" ({} links)", format::count(count)),
        };
        let offline = if link.is_offline { " (offline)" } else { "" };
        let link = format!("  link    {}{many}{offline} -> ", harmless(&link.path));
        let rest = width.saturating_sub(link.chars().count()).max(20);
        writeln!(out, "{link}{}", shortened(&names.join(", "), rest))?;
    }
    for (count, what) in [
        (map.undrawn_servers, "namespace servers"),
        (map.undrawn_links, "links"),
        (map.undrawn_targets, "servers of targets"),
    ] {
        if count > 0 {
            writeln!(out, "  {} more {what}", format::count(count))?;
        }
    }
    Ok(())
}

/// The stages with their commands.
pub fn write_stages(out: &mut String, stages: &[StageCard], width: usize) -> fmt::Result {
    for stage in stages {
        let status = stage.status.as_ref().map(|status| format!(" [{status}]"));
        let title = format!(
            "{}. {} ({}){}",
            stage.number,
            stage.title,
            stage.name,
            status.unwrap_or_default()
        );
        wrapped(out, &harmless(&title), width)?;
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
            writeln!(out, "{:inner$}  {}", "", harmless(line))?;
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

/// Words after a title, in lines below each other.
fn indented(
    out: &mut String,
    indent: usize,
    title: &str,
    words: &str,
    width: usize,
) -> fmt::Result {
    let mut lines = String::new();
    wrapped(
        &mut lines,
        &format!("{title}{}", harmless(words)),
        width.saturating_sub(indent).max(20),
    )?;
    lines.lines().try_for_each(|line| writeln!(out, "{:indent$}{line}", ""))
}
