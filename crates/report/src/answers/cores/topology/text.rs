//! The drawing of a machine as text: a row for each hardware thread of a node's cores, a mark for each core, today and
//! as planned.

use smbscope_plan::cores::current::Queue;
use smbscope_plan::cores::layout::CpuId;

use crate::answers::cores::Lines;
use crate::answers::cores::topology::{AdapterBox, Core, Thread, TopologyDrawing};
use crate::answers::cores::words::cpu;
use crate::value::format;

/// Cores in one row of the drawing.
const CORES_IN_ROW: usize = 24;
/// Columns left of the drawing.
const LABEL: usize = 42;
/// CPUs of an adapter that are listed.
const CPUS_LISTED: usize = 16;
/// This number of CPUs or more with equal distances are written as a range.
const CPUS_IN_RANGE: usize = 6;

/// Draws sockets, nodes, cores and threads.
pub(crate) fn machine(text: &mut Lines, board: &TopologyDrawing) {
    // A node can have several sockets, which virtual machines have by the dozen.
    let nodes = || board.sockets.iter().flat_map(|socket| &socket.nodes);
    let mut numbers: Vec<u32> = nodes().map(|node| node.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for (place, number) in numbers.into_iter().enumerate() {
        let sockets: Vec<u32> = board
            .sockets
            .iter()
            .filter(|socket| socket.nodes.iter().any(|node| node.number == number))
            .map(|socket| socket.number)
            .collect();
        let cores = nodes().filter(|node| node.number == number).flat_map(|node| &node.cores);
        let cores: Vec<&Core> = cores.collect();
        let sockets = match &sockets[..] {
            [only] => format!("socket {only}"),
            several => format!("{} sockets", several.len()),
        };
        let threads = cores.iter().map(|core| core.threads.len()).max().unwrap_or(0);
        let head = format!(
            "node {number} ({sockets}, {}{})",
            format::counted(cores.len(), "core"),
            if threads > 1 { format!(", {threads} threads each") } else { String::new() }
        );
        let width = cores.len().clamp(5, CORES_IN_ROW);
        match place {
            0 => text.drawn(&format!("  {head:<LABEL$}  {:<width$}   planned", "today")),
            _ => text.drawn(&format!("  {head}")),
        }
        for row in cores.chunks(CORES_IN_ROW) {
            rows(text, row, threads, width, board);
        }
    }
    if board.undrawn > 0 {
        text.line(2, &format!("{} more are not drawn.", format::counted(board.undrawn, "CPU")));
    }
    legend(text, board);
}

fn rows(text: &mut Lines, cores: &[&Core], threads: usize, width: usize, board: &TopologyDrawing) {
    for place in 0..threads {
        let of_row: Vec<Option<&Thread>> =
            cores.iter().map(|core| core.threads.get(place)).collect();
        let known = || of_row.iter().flatten();
        // First threads are always drawn, others where they do something or are offline.
        let is_drawn = place == 0
            || known()
                .any(|one| !one.is_online || one.work.iter().any(|work| !work.cards.is_empty()));
        let cpus: Vec<CpuId> = known().map(|thread| thread.cpu).collect();
        let thread = if threads > 1 { format!("thread {place}, ") } else { String::new() };
        let label = format!("  {thread}CPU {}", range(&cpus));
        if is_drawn {
            let [now, planned] = [0, 1].map(|when| {
                of_row.iter().map(|one| one.map_or(' ', |one| mark(one, when, board))).collect()
            });
            draw(text, &label, &now, &planned, width);
        }
        if board.has_busy.contains(&true) {
            let tenths = |when: usize| {
                let digit = |one: &Option<&Thread>| {
                    let busy = one.and_then(|one| one.work.get(when)?.busy);
                    let tenths = busy.map(|share| (share * 10.0).round().min(9.0) as u32);
                    tenths.and_then(|tenths| char::from_digit(tenths, 10)).unwrap_or(' ')
                };
                of_row.iter().map(digit).collect::<String>()
            };
            draw(text, &format!("  {thread}busy, tenths"), &tenths(0), &tenths(1), width);
        }
    }
}

fn draw(text: &mut Lines, label: &str, now: &String, planned: &str, width: usize) {
    text.drawn(format!("  {label:<LABEL$}  {now:<width$}   {planned}").trim_end());
}

fn mark(thread: &Thread, when: usize, board: &TopologyDrawing) -> char {
    let cards = thread.work.get(when).map_or(&[][..], |work| &work.cards);
    match cards {
        _ if !thread.is_online => 'x',
        [] => '·',
        [one] if one.queues.is_empty() => '+',
        [one] => board.cards.get(one.card).map_or('#', |card| card.letter),
        _ => '*',
    }
}

/// What the marks mean that are not an adapter's.
fn legend(text: &mut Lines, board: &TopologyDrawing) {
    let meanings = [
        ('·', "receives nothing"),
        ('*', "several adapters"),
        ('+', "packet steering (RPS) only"),
        ('x', "offline"),
        ('#', "an adapter after the 52nd"),
    ];
    let threads = || {
        let cores = board.sockets.iter().flat_map(|socket| &socket.nodes);
        cores.flat_map(|node| &node.cores).flat_map(|core| &core.threads)
    };
    let is_drawn = |wanted: char| {
        threads().any(|one| [0, 1].iter().any(|&when| mark(one, when, board) == wanted))
    };
    let used: Vec<_> = meanings
        .iter()
        .filter(|(mark, _)| is_drawn(*mark))
        .map(|(mark, meaning)| format!("{mark} {meaning}"))
        .collect();
    if !used.is_empty() {
        text.line(2, &used.join("; "));
    }
}

/// `0 to 5`, `0, 2 to 10`, or the first and last.
fn range(cpus: &[CpuId]) -> String {
    match cpus {
        [] => String::new(),
        [one] => cpu(*one),
        [a, b] => format!("{}, {}", cpu(*a), cpu(*b)),
        [first, .., last] => {
            even_range(cpus).unwrap_or_else(|| format!("{} ... {}", cpu(*first), cpu(*last)))
        }
    }
}

/// The same for at least three CPUs with equal distances.
fn even_range(cpus: &[CpuId]) -> Option<String> {
    let (&[first, second, ..], last) = (cpus, cpus.last()?) else { return None };
    let step = second.1.checked_sub(first.1).filter(|step| *step > 0)?;
    let is_even = |pair: &[CpuId]| match pair {
        [a, b] => a.0 == b.0 && b.1.checked_sub(a.1) == Some(step),
        _ => false,
    };
    (cpus.len() > 2 && cpus.windows(2).all(is_even)).then(|| match step {
        1 => format!("{} to {}", cpu(first), cpu(*last)),
        _ => format!("{}, {} to {}", cpu(first), cpu(second), cpu(*last)),
    })
}

/// `A eth4 (10 Gbit/s, ice), node 1`.
pub(crate) fn card(card: &AdapterBox) -> String {
    let about = if card.about.is_empty() { String::new() } else { format!(" ({})", card.about) };
    let node = card.node.map_or(", node not known".to_owned(), |node| format!(", node {node}"));
    format!("{} {}{about}{node}", card.letter, card.name)
}

/// `4 queues on CPU 8, 10, 12, 14`, with the number of queues where a CPU has several.
pub(crate) fn queues(queues: &[Queue]) -> String {
    let mut cpus: Vec<(CpuId, usize)> = Vec::new();
    for id in queues.iter().filter_map(|queue| queue.cpu) {
        match cpus.iter_mut().find(|(known, _)| *known == id) {
            Some((_, count)) => *count += 1,
            None => cpus.push((id, 1)),
        }
    }
    let unknown = queues.iter().filter(|queue| queue.cpu.is_none()).count();
    let names = cpus.iter().take(CPUS_LISTED).map(|&(id, count)| match count {
        1 => cpu(id),
        _ if cpus.len() == 1 => cpu(id),
        _ => format!("{} ({count})", cpu(id)),
    });
    let mut names = names.collect::<Vec<_>>().join(", ");
    let ids: Vec<_> = cpus.iter().map(|(id, _)| *id).collect();
    let even = cpus.iter().all(|(_, count)| *count == 1).then(|| even_range(&ids)).flatten();
    if let Some(range) = even.filter(|_| cpus.len() >= CPUS_IN_RANGE) {
        names = range;
    } else if cpus.len() > CPUS_LISTED {
        names.push_str(&format!(" and {} more", format::count((cpus.len() - CPUS_LISTED) as u64)));
    }
    let queues = format::counted(queues.len(), "queue");
    match (cpus.is_empty(), unknown) {
        (true, 0) => "not known".to_owned(),
        (true, _) => format!("{queues}, on CPUs that are not known"),
        (false, 0) => format!("{queues} on CPU {names}"),
        (false, _) => {
            format!("{queues} on CPU {names}; the CPUs of {unknown} are not known")
        }
    }
}
