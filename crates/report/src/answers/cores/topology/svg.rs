//! The CPUs and adapters of a machine as SVG, before and after a change.
//!
//! Each socket is a drawing of its own with the size of its text, so that sockets wrap on a narrow page instead of
//! shrinking.

use std::fmt::Write;

use smbscope_plan::cores::current::Queue;

use crate::answers::cores::topology::{AdapterBox, Core, Node, Socket, Thread, TopologyDrawing};
use crate::render::html::{escape, open};
use crate::value::format;

/// Places of colours, in the order of adapters.
const COLOURS: [usize; 14] = [1, 0, 7, 2, 5, 6, 10, 8, 12, 4, 11, 9, 13, 3];
/// What the two drawings show.
const WHEN: [&str; 2] = ["Today", "Planned"];

/// Cores in one row of a node.
const CORES_IN_ROW: usize = 8;
/// Width of a core with its gap.
const PITCH: usize = 42;
/// Height of a thread's cell: its number, and the mark of its adapters.
const CELL: usize = 28;
/// Width that the letter of an adapter needs; where there is less, the number of adapters is written.
const LETTER: f64 = 7.0;
/// Queues that are drawn for an adapter.
const QUEUES_DRAWN: usize = 48;
/// Width and height of a queue with its gap.
const QUEUE: usize = 12;
/// Space within the boxes of sockets and nodes, and the height of their names.
const PADDING: usize = 6;
const TITLE: usize = 17;
/// Least columns of a node that has adapters, for their names.
const COLUMNS_MIN: usize = 5;

/// Two drawings: today and as planned.
pub(crate) fn write(out: &mut String, board: &TopologyDrawing) {
    open(out, "The machine", "", "Letters are adapters; a cell is a hardware thread.");
    out.push_str(
        "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect class=\"ground\" width=\"5\" height=\"5\"/><path class=\"stroke\" d=\"M0 0V5\"/></pattern></defs></svg>\n",
    );
    legend(out, board);
    out.push_str("<div class=\"boards\">\n");
    for (when, title) in WHEN.iter().enumerate() {
        let _ = writeln!(out, "<div class=\"board\"><h3>{title}</h3><div class=\"sockets\">");
        for socket in &board.sockets {
            draw_socket(out, board, socket, when);
        }
        out.push_str("</div></div>\n");
    }
    out.push_str("</div></figure>\n");
    if board.undrawn > 0 {
        let count = format::count(board.undrawn as u64);
        let _ = writeln!(out, "<p class=\"more\">{count} more CPUs are not drawn.</p>");
    }
}

fn legend(out: &mut String, board: &TopologyDrawing) {
    out.push_str("<ul class=\"legend\">");
    for (place, card) in board.cards.iter().enumerate() {
        let _ = write!(
            out,
            "<li><i class=\"k{}\"></i>{} {}</li>",
            colour(place),
            card.letter,
            escape(&card.name)
        );
    }
    out.push_str("<li><i class=\"idle\"></i>receives nothing</li>");
    let threads = || {
        let nodes = board.sockets.iter().flat_map(|socket| &socket.nodes);
        nodes.flat_map(|node| &node.cores).flat_map(|core| &core.threads)
    };
    if threads().any(|thread| !thread.is_online) {
        out.push_str("<li><i class=\"hatched\"></i>offline</li>");
    }
    let served = || threads().flat_map(|thread| &thread.work).flat_map(|work| &work.cards);
    if served().any(|one| one.queues.is_empty()) {
        out.push_str("<li><i class=\"idle\">+</i>packet steering (RPS) only</li>");
    }
    if board.has_busy.contains(&true) {
        out.push_str("<li><i class=\"busy\"></i>busy: the redder the cell, the more</li>");
    }
    out.push_str("</ul>\n");
}

fn colour(place: usize) -> usize {
    COLOURS.get(place % COLOURS.len()).copied().unwrap_or(3)
}

/// Adapters that are drawn in a node.
fn cards<'a>(
    board: &'a TopologyDrawing,
    node: &'a Node,
) -> impl Iterator<Item = (usize, &'a AdapterBox)> {
    board
        .cards
        .iter()
        .enumerate()
        .filter(move |(_, card)| node.is_first && card.drawn_at == Some(node.number))
}

/// The size of a node: columns of cores, rows of cells in each core, and its height.
struct Size {
    columns: usize,
    /// Height of a core with its gap.
    core: usize,
    cores: usize,
    cards: usize,
}

impl Size {
    fn from_board(board: &TopologyDrawing, node: &Node, when: usize) -> Size {
        let threads = node.cores.iter().map(|core| core.threads.len()).max().unwrap_or(1);
        let core = threads.div_ceil(2).max(1) * CELL + 6;
        let cores = node.cores.len().div_ceil(CORES_IN_ROW) * core;
        let columns = node.cores.len().clamp(1, CORES_IN_ROW);
        let cards = || cards(board, node);
        let columns = if cards().next().is_some() { columns.max(COLUMNS_MIN) } else { columns };
        let queues = cards().map(|(_, card)| {
            let queues = card.queues.get(when).map_or(0, Vec::len).min(QUEUES_DRAWN);
            TITLE + queues.div_ceil(in_row(columns)).max(1) * QUEUE + 4
        });
        Size { columns, core, cores, cards: queues.sum() }
    }

    fn height(&self) -> usize {
        TITLE + self.cores + self.cards + PADDING
    }
}

/// Queues in a row of a node with that many columns of cores.
fn in_row(columns: usize) -> usize {
    (columns * PITCH / QUEUE).max(1)
}

fn draw_socket(out: &mut String, board: &TopologyDrawing, socket: &Socket, when: usize) {
    let sizes: Vec<Size> =
        socket.nodes.iter().map(|node| Size::from_board(board, node, when)).collect();
    let columns = sizes.iter().map(|size| size.columns).max().unwrap_or(1).max(2);
    let inside = columns * PITCH + 2 * PADDING;
    let width = inside + 2 * PADDING;
    let height = TITLE + sizes.iter().map(|size| size.height() + PADDING).sum::<usize>();
    let title = format!(
        "Socket {}, {}: {}",
        socket.number,
        WHEN.get(when).copied().unwrap_or("").to_lowercase(),
        summary(board, socket, when)
    );
    let _ = write!(
        out,
        "<svg class=\"socket\" role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\"><title>{}</title>\
         <rect class=\"case\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"6\"/><text class=\"name\" x=\"{PADDING}\" y=\"13\">Socket {}</text>",
        escape(&title),
        width - 1,
        height - 1,
        socket.number
    );
    let mut top = TITLE;
    for (node, size) in socket.nodes.iter().zip(&sizes) {
        let _ = write!(
            out,
            "<rect class=\"node\" x=\"{PADDING}\" y=\"{top}\" width=\"{inside}\" height=\"{}\" rx=\"4\"/><text class=\"name\" x=\"{}\" y=\"{}\">Node {}{}</text>",
            size.height(),
            2 * PADDING,
            top + 13,
            node.number,
            group(node)
        );
        draw_node(out, board, node, size, top + TITLE, when);
        top += size.height() + PADDING;
    }
    out.push_str("</svg>\n");
}

/// The processor groups of Windows, where there are several.
fn group(node: &Node) -> String {
    let mut groups: Vec<u32> =
        node.cores.iter().flat_map(|core| &core.threads).map(|thread| thread.cpu.0).collect();
    groups.sort_unstable();
    groups.dedup();
    match &groups[..] {
        [] | [0] => String::new(),
        [one] => format!(", group {one}"),
        several => {
            let names: Vec<_> = several.iter().map(u32::to_string).collect();
            format!(", groups {}", names.join(", "))
        }
    }
}

/// What the CPUs of a socket receive, in words.
fn summary(board: &TopologyDrawing, socket: &Socket, when: usize) -> String {
    let threads = || {
        let cores = socket.nodes.iter().flat_map(|node| &node.cores);
        cores.flat_map(|core| &core.threads)
    };
    let parts: Vec<_> = board
        .cards
        .iter()
        .enumerate()
        .filter_map(|(place, card)| {
            let serves = |thread: &&Thread| {
                let work = thread.work.get(when);
                work.is_some_and(|work| work.cards.iter().any(|one| one.card == place))
            };
            let cpus: Vec<_> = threads().filter(serves).map(cpu).collect();
            (!cpus.is_empty()).then(|| format!("{} on CPU {}", card.name, cpus.join(", ")))
        })
        .collect();
    if parts.is_empty() { "receives nothing".to_owned() } else { parts.join("; ") }
}

fn cpu(thread: &Thread) -> String {
    match thread.cpu {
        (0, number) => number.to_string(),
        (group, number) => format!("{group}:{number}"),
    }
}

fn draw_node(
    out: &mut String,
    board: &TopologyDrawing,
    node: &Node,
    size: &Size,
    top: usize,
    when: usize,
) {
    for (place, core) in node.cores.iter().enumerate() {
        let x = 2 * PADDING + place % CORES_IN_ROW * PITCH;
        let y = top + place / CORES_IN_ROW * size.core;
        let _ = write!(
            out,
            "<rect class=\"core\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"3\"/>",
            PITCH - 4,
            size.core - 4
        );
        draw_core(out, board, core, (x + 2, y + 1), when);
    }
    let mut y = top + size.cores;
    for (place, card) in cards(board, node) {
        let queues = card.queues.get(when).map_or(&[][..], Vec::as_slice);
        let room = size.columns * PITCH / 6;
        let mut about =
            if card.about.is_empty() { String::new() } else { format!(" {}", card.about) };
        if card.node.is_none() {
            about.push_str(", node not known");
        }
        let name = format::sanitized(&format!("{}{about}", card.name));
        let name = format::shortened(&name, room.saturating_sub(4));
        let _ = write!(
            out,
            "<g><title>{}</title><rect class=\"k{}\" x=\"{}\" y=\"{}\" width=\"14\" height=\"13\" rx=\"2\"/><text class=\"mark\" x=\"{}\" y=\"{}\">{}</text><text class=\"adapter\" x=\"{}\" y=\"{}\">{}</text></g>",
            escape(&format!("{}{about}: {} queues", card.name, queues.len())),
            colour(place),
            2 * PADDING,
            y + 1,
            2 * PADDING + 7,
            y + 11,
            card.letter,
            2 * PADDING + 19,
            y + 11,
            escape(&name)
        );
        y += TITLE;
        for (place_of_queue, queue) in queues.iter().take(QUEUES_DRAWN).enumerate() {
            let columns = in_row(size.columns);
            draw_queue(
                out,
                queue,
                colour(place),
                2 * PADDING + place_of_queue % columns * QUEUE,
                y + place_of_queue / columns * QUEUE,
            );
        }
        if queues.is_empty() {
            let _ = write!(
                out,
                "<text class=\"soft\" x=\"{}\" y=\"{}\">{}</text>",
                2 * PADDING,
                y + 8,
                if when == 0 { "queues not known" } else { "not planned" }
            );
        }
        y += queues.len().min(QUEUES_DRAWN).div_ceil(in_row(size.columns)).max(1) * QUEUE + 4;
    }
}

fn draw_queue(out: &mut String, queue: &Queue, colour: usize, x: usize, y: usize) {
    let (class, place) = match queue.cpu {
        Some((0, number)) => (format!("k{colour}"), format!("CPU {number}")),
        Some((group, number)) => (format!("k{colour}"), format!("CPU {group}:{number}")),
        None => ("offline".to_owned(), "a CPU that is not known".to_owned()),
    };
    let _ = write!(
        out,
        "<rect class=\"{class} queue\" x=\"{x}\" y=\"{y}\" width=\"10\" height=\"10\" rx=\"2\"><title>Queue {}: {place}</title></rect>",
        queue.number
    );
}

fn draw_core(
    out: &mut String,
    board: &TopologyDrawing,
    core: &Core,
    (left, top): (usize, usize),
    when: usize,
) {
    let columns = core.threads.len().clamp(1, 2);
    let width = (PITCH - 8) / columns;
    for (place, thread) in core.threads.iter().enumerate() {
        let x = left + place % columns * width;
        let y = top + 1 + place / columns * CELL;
        draw_thread(out, board, core, thread, (x + 1, y, width - 2), when);
    }
}

fn draw_thread(
    out: &mut String,
    board: &TopologyDrawing,
    core: &Core,
    thread: &Thread,
    (x, y, width): (usize, usize, usize),
    when: usize,
) {
    let work = thread.work.get(when).cloned().unwrap_or_default();
    let mut words = match core.number {
        Some(core) => format!("CPU {}, core {core}", cpu(thread)),
        None => format!("CPU {}", cpu(thread)),
    };
    for served in &work.cards {
        let name = board.cards.get(served.card).map_or("", |card| card.name.as_str());
        let queues: Vec<_> = served.queues.iter().map(u32::to_string).collect();
        words.push_str(&match queues.len() {
            0 => format!("; {name} by packet steering (RPS)"),
            1 => format!("; {name}, queue {}", queues.join(", ")),
            _ => format!("; {name}, queues {}", queues.join(", ")),
        });
    }
    if let Some(busy) = work.busy {
        words.push_str(&format!("; busy {}", format::share(busy)));
    }
    if !thread.is_online {
        words.push_str("; offline");
    }
    let class = if thread.is_online { "cell" } else { "cell offline" };
    let _ = write!(
        out,
        "<g><title>{}</title><rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" rx=\"2\"/>",
        escape(&words),
        CELL - 2
    );
    if let Some(busy) = work.busy.filter(|busy| *busy > 0.0) {
        let _ = write!(
            out,
            "<rect class=\"busy\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"14\" opacity=\"{:.2}\"/>",
            0.8 * busy
        );
    }
    let number = thread.cpu.1;
    // Digits that fit next to those of the other thread.
    let long = if number > 99 && width < 20 { " class=\"long\"" } else { "" };
    let _ = write!(out, "<text{long} x=\"{}\" y=\"{}\">{number}</text>", x + width / 2, y + 10);
    let count = work.cards.len();
    if count > 0 {
        let each = width as f64 / count as f64;
        for (place, served) in work.cards.iter().enumerate() {
            let (class, letter) = if served.queues.is_empty() {
                (" rps", '+')
            } else {
                ("", board.cards.get(served.card).map_or('#', |card| card.letter))
            };
            let left = x as f64 + each * place as f64;
            let _ = write!(
                out,
                "<rect class=\"k{}{class}\" x=\"{left:.1}\" y=\"{}\" width=\"{each:.1}\" height=\"12\"/>",
                colour(served.card),
                y + 14
            );
            if each >= LETTER {
                let _ = write!(
                    out,
                    "<text class=\"mark\" x=\"{:.1}\" y=\"{}\">{letter}</text>",
                    left + each / 2.0,
                    y + 23
                );
            }
        }
    }
    if count > 0 && (width as f64 / count as f64) < LETTER {
        let middle = x + width / 2;
        let _ = write!(out, "<text class=\"mark\" x=\"{middle}\" y=\"{}\">{count}×</text>", y + 23);
    }
    out.push_str("</g>");
}
