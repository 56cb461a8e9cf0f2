//! The drawing of a namespace as SVG.

use std::fmt::Write;

use crate::answers::namespace::map::{MapLink, MapServer, MapTarget, NamespaceMap, Role};
use crate::render::html::{escape, open};
use crate::value::format;

/// Width of the drawing and of its columns, and the height of a row.
const WIDTH: usize = 880;
const BOX: usize = 230;
const ROW: usize = 24;
/// Space above the rows: the titles of the columns.
const TOP: usize = 26;
/// Left edges of the columns.
const LINKS_AT: usize = (WIDTH - BOX) / 2;
const TARGETS_AT: usize = WIDTH - BOX;
/// Lines above which they are drawn faintly.
const DENSE: usize = 150;
/// Characters of a name in its box.
const NAME: usize = 30;

/// Namespace servers on the left, links in the middle, servers of their targets on the right.
pub(crate) fn write(out: &mut String, map: &NamespaceMap) {
    open(out, &map.root, "", "Lines lead from each link to the servers of its targets.");
    legend(out, map);
    let rows = map.servers.len().max(map.links.len()).max(map.targets.len()).max(1);
    let height = TOP + rows * ROW + 6;
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\"><svg class=\"map{}\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\"><title>{}</title>",
        if map.links.iter().map(|link| link.to.len()).sum::<usize>() > DENSE {
            " dense"
        } else {
            ""
        },
        escape(&words(map))
    );
    for (at, title) in [(0, "Namespace servers"), (LINKS_AT, "Links"), (TARGETS_AT, "Targets on")] {
        let _ = writeln!(out, "<text class=\"column\" x=\"{at}\" y=\"14\">{title}</text>");
    }
    let target_rows = placed(map.targets.len(), rows);
    let link_rows = placed(map.links.len(), rows);
    let server_rows = placed(map.servers.len(), rows);
    // Lines first, so that boxes cover their ends.
    for y in &server_rows {
        let _ = write!(
            out,
            "<path class=\"edge\" d=\"M{BOX} {y}C{} {y} {} {} {LINKS_AT} {}\"/>",
            BOX + 50,
            LINKS_AT - 50,
            TOP + 10,
            TOP + 10
        );
    }
    for (link, y) in map.links.iter().zip(&link_rows) {
        for (place, is_offline) in &link.to {
            let Some(to) = target_rows.get(*place) else { continue };
            let class = if *is_offline || link.is_offline { "edge off" } else { "edge" };
            let from = LINKS_AT + BOX;
            let _ = write!(
                out,
                "<path class=\"{class}\" d=\"M{from} {y}C{} {y} {} {to} {TARGETS_AT} {to}\"/>",
                from + 45,
                TARGETS_AT - 45
            );
        }
    }
    out.push('\n');
    map.servers.iter().zip(&server_rows).for_each(|(server, y)| draw_server(out, server, *y));
    map.links.iter().zip(&link_rows).for_each(|(link, y)| draw_link(out, link, *y));
    map.targets.iter().zip(&target_rows).for_each(|(target, y)| draw_target(out, target, *y));
    out.push_str("</svg></div></figure>\n");
    let left_out = [
        (map.undrawn_servers, "namespace servers"),
        (map.undrawn_links, "links"),
        (map.undrawn_targets, "servers of targets"),
    ];
    let left_out = left_out.iter().filter(|(count, _)| *count > 0);
    let left_out = left_out.map(|(count, what)| format!("{} more {what}", format::count(*count)));
    let left_out: Vec<_> = left_out.collect();
    if !left_out.is_empty() {
        let _ = writeln!(out, "<p class=\"more\">Not drawn: {}.</p>", left_out.join(", "));
    }
}

/// The middles of rows that are spread over the height.
fn placed(count: usize, rows: usize) -> Vec<usize> {
    let height = rows * ROW;
    let step = height / count.max(1);
    (0..count).map(|place| TOP + place * step.min(ROW * 3) + ROW / 2).collect()
}

fn legend(out: &mut String, map: &NamespaceMap) {
    let names = [
        (Role::Stays, "stays", "namespace server"),
        (Role::Joins, "joins", "joins"),
        (Role::Leaves, "leaves", "leaves"),
    ];
    let has = |role: Role| map.servers.iter().any(|server| server.role == role);
    out.push_str("<ul class=\"legend maplegend\">");
    for (role, class, name) in names.iter().filter(|(role, ..)| has(*role)) {
        let name = if *role == Role::Stays && has(Role::Leaves) { "stays" } else { *name };
        let _ = write!(out, "<li><i class=\"{class}\"></i>{name}</li>");
    }
    let is_off = |link: &MapLink| link.is_offline || link.to.iter().any(|(_, off)| *off);
    if map.links.iter().any(is_off) || map.servers.iter().any(|server| server.is_offline) {
        out.push_str("<li><i class=\"offline\"></i>offline (dashed)</li>");
    }
    out.push_str("</ul>\n");
}

/// The drawing in words.
fn words(map: &NamespaceMap) -> String {
    let links: u64 = map.links.iter().map(|link| link.links).sum::<u64>() + map.undrawn_links;
    format!(
        "{}: {} namespace servers, {} links, targets on {} servers",
        map.root,
        map.servers.len() as u64 + map.undrawn_servers,
        format::count(links),
        format::count(map.targets.len() as u64 + map.undrawn_targets)
    )
}

fn class(role: Option<Role>) -> &'static str {
    match role {
        Some(Role::Joins) => "joins",
        Some(Role::Leaves) => "leaves",
        Some(Role::Stays) => "stays",
        None => "",
    }
}

/// A box with a name, and the whole name in its title.
fn named(out: &mut String, x: usize, y: usize, class: &str, name: &str, note: &str) {
    let shown = format::shortened(name, if note.is_empty() { NAME } else { NAME - 8 });
    let title = if note.is_empty() { name.to_owned() } else { format!("{name}: {note}") };
    let _ = write!(
        out,
        "<g class=\"node {class}\"><title>{}</title><rect x=\"{x}\" y=\"{}\" width=\"{BOX}\" height=\"20\" rx=\"4\"/><text x=\"{}\" y=\"{}\">{}</text>",
        escape(&title),
        y.saturating_sub(10),
        x + 8,
        y + 4,
        escape(&shown)
    );
    if !note.is_empty() {
        let _ = write!(
            out,
            "<text class=\"note\" x=\"{}\" y=\"{}\">{}</text>",
            x + BOX - 8,
            y + 4,
            escape(note)
        );
    }
    out.push_str("</g>\n");
}

fn draw_server(out: &mut String, server: &MapServer, y: usize) {
    let role = class(Some(server.role));
    let (off, note) = if server.is_offline { (" offline", "offline") } else { ("", "") };
    named(out, 0, y, &format!("{role}{off}"), &server.name, note);
}

fn draw_link(out: &mut String, link: &MapLink, y: usize) {
    let note = match (link.links, link.undrawn) {
        (1, 0) if link.is_offline => "offline".to_owned(),
        (1, 0) => String::new(),
        (1, more) => format!("+{more}"),
        (links, _) => format!("{} links", format::count(links)),
    };
    named(out, LINKS_AT, y, if link.is_offline { "offline" } else { "" }, &link.path, &note);
}

fn draw_target(out: &mut String, target: &MapTarget, y: usize) {
    named(out, TARGETS_AT, y, class(target.role), &target.name, &format::count(target.targets));
}
