//! The drawing of a machine as data: CPUs by socket, node, core and thread, and what they receive today and as
//! planned.

use std::collections::{BTreeMap, BTreeSet};

use smbscope_plan::cores::current::{AdapterPlace, Queue, current};
use smbscope_plan::cores::layout::{CpuId, Layout};
use smbscope_plan::cores::topology::{Adapter, Cpu, Kind, Machine};

use crate::answers::cores::topology::{
    AdapterBox, Core, Node, Served, Socket, Thread, TopologyDrawing, Work,
};
use crate::value::format;

/// CPUs that are drawn.
const CPUS_DRAWN: usize = 2048;
/// A core's number at or above this is one that the reader of the input made up.
const CORES_MADE_UP: u32 = 1 << 20;

/// The share of the time in which CPUs are busy, 0 to 1.
pub(crate) type Busy = BTreeMap<CpuId, f64>;

/// Draws a machine; `busy` is for today and as planned.
pub(crate) fn topology(
    machine: &Machine,
    layout: &Layout,
    busy: [Option<&Busy>; 2],
) -> TopologyDrawing {
    let places = current(machine);
    let mut board =
        TopologyDrawing { has_busy: busy.map(|one| one.is_some()), ..TopologyDrawing::default() };
    let mut work: BTreeMap<CpuId, [Work; 2]> = BTreeMap::new();
    let nodes: BTreeSet<u32> = machine.cpus.iter().map(|cpu| cpu.node).collect();
    for (index, (card, place)) in machine.cards.iter().zip(&places).enumerate() {
        let planned = layout.cards.iter().find(|one| one.card == index);
        if place.queues.is_empty() && planned.is_none() {
            continue;
        }
        let number = board.cards.len();
        let after = AdapterPlace {
            queues: planned.map_or(Vec::new(), |one| queues(&one.queues)),
            rps: planned.map_or(Vec::new(), |one| one.rps.clone()),
            ..AdapterPlace::default()
        };
        for (when, place) in [place, &after].into_iter().enumerate() {
            for (cpu, queues) in served(place) {
                if let Some(work) = work.entry(cpu).or_default().get_mut(when) {
                    work.cards.push(Served { card: number, queues });
                }
            }
        }
        let only = nodes.first().filter(|_| nodes.len() == 1).copied();
        let own = card.node.filter(|node| nodes.contains(node)).or(only);
        board.cards.push(AdapterBox {
            index,
            letter: letter(number),
            name: card.name.clone(),
            about: about(card),
            node: own,
            drawn_at: own.or(planned.map(|one| one.node)),
            queues: [place.queues.clone(), after.queues],
        });
    }
    for (when, busy) in busy.into_iter().enumerate() {
        for (&cpu, &share) in busy.into_iter().flatten() {
            if let Some(work) = work.entry(cpu).or_default().get_mut(when) {
                work.busy = Some(share.clamp(0.0, 1.0));
            }
        }
    }
    let mut cpus: Vec<&Cpu> = machine.cpus.iter().collect();
    cpus.sort_by_key(|cpu| (cpu.socket, cpu.node, cpu.core, cpu.thread, cpu.group, cpu.number));
    board.undrawn = cpus.len().saturating_sub(CPUS_DRAWN);
    cpus.truncate(CPUS_DRAWN);
    board.sockets = sockets(&cpus, &work);
    board
}

fn queues(cpus: &[CpuId]) -> Vec<Queue> {
    (0..).zip(cpus).map(|(number, cpu)| Queue { number, cpu: Some(*cpu) }).collect()
}

/// The CPUs of an adapter, with the queues of each.
fn served(place: &AdapterPlace) -> BTreeMap<CpuId, Vec<u32>> {
    let mut cpus: BTreeMap<CpuId, Vec<u32>> = BTreeMap::new();
    for queue in &place.queues {
        if let Some(cpu) = queue.cpu {
            cpus.entry(cpu).or_default().push(queue.number);
        }
    }
    for &cpu in &place.rps {
        cpus.entry(cpu).or_default();
    }
    cpus
}

fn sockets(cpus: &[&Cpu], work: &BTreeMap<CpuId, [Work; 2]>) -> Vec<Socket> {
    let mut drawn = BTreeSet::new();
    let sockets = cpus.chunk_by(|a, b| a.socket == b.socket).map(|socket| Socket {
        number: socket.first().map_or(0, |cpu| cpu.socket),
        nodes: socket
            .chunk_by(|a, b| a.node == b.node)
            .map(|node| {
                let number = node.first().map_or(0, |cpu| cpu.node);
                let cores = node.chunk_by(|a, b| a.core == b.core).map(|core| core_of(core, work));
                let mut cores: Vec<_> = cores.collect();
                // Numbers of cores may follow another order than those of CPUs, which people know.
                cores.sort_by_key(|core| core.threads.first().map(|thread| thread.cpu));
                Node { number, is_first: drawn.insert(number), cores }
            })
            .collect(),
    });
    sockets.collect()
}

fn core_of(threads: &[&Cpu], work: &BTreeMap<CpuId, [Work; 2]>) -> Core {
    let number = threads.first().map(|cpu| cpu.core);
    let threads = threads.iter().map(|cpu| {
        let id = (cpu.group, cpu.number);
        let work = work.get(&id).cloned().unwrap_or_default();
        Thread { cpu: id, is_online: cpu.is_online, work }
    });
    Core { number: number.filter(|core| *core < CORES_MADE_UP), threads: threads.collect() }
}

/// `A` to `Z`, then `a` to `z`; all others share a mark.
fn letter(place: usize) -> char {
    (b'A'..=b'Z').chain(b'a'..=b'z').nth(place).map_or('#', char::from)
}

fn about(card: &Adapter) -> String {
    let speed = card.bits_per_second.map(|speed| format!("{} Gbit/s", decimal(speed)));
    let kind = match card.kind {
        Kind::Physical => None,
        Kind::VirtualFunction => Some("virtual function".to_owned()),
        Kind::Virtual => Some("virtual".to_owned()),
    };
    let link = (card.is_up == Some(false)).then(|| "link down".to_owned());
    let parts = [speed, card.driver.clone(), kind, link];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn decimal(bits_per_second: u64) -> String {
    format::decimal(bits_per_second as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::TextOptions;

    fn machine(cpus: u32) -> Machine {
        let cpu = |number| Cpu {
            number,
            core: number / 2,
            thread: number % 2,
            is_online: true,
            ..Cpu::default()
        };
        let card = Adapter { name: "eth0".into(), ..Adapter::default() };
        Machine { cpus: (0..cpus).map(cpu).collect(), cards: vec![card], ..Machine::default() }
    }

    fn texts(board: &TopologyDrawing) -> (String, String) {
        let mut text = crate::answers::cores::Lines {
            text: String::new(),
            options: TextOptions::new(100, true),
        };
        crate::answers::cores::topology::text::machine(&mut text, board);
        let mut page = String::new();
        crate::answers::cores::topology::svg::write(&mut page, board);
        (text.text, page)
    }

    #[test]
    fn how_busy_processors_are_shades_them_before_and_after() {
        let machine = machine(4);
        let layout = smbscope_plan::cores::layout::plan(&machine);
        let (today, planned) = (Busy::from([((0, 0), 0.83)]), Busy::from([((0, 2), 0.4)]));
        let (text, page) = texts(&topology(&machine, &layout, [Some(&today), Some(&planned)]));
        let lines: Vec<_> = text.lines().filter(|line| line.contains("thread 0, busy")).collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert_eq!(lines[0].split_whitespace().skip(4).collect::<Vec<_>>(), ["8", "4"], "{text}");
        assert_eq!(page.matches("<rect class=\"busy\"").count(), 2, "{page}");
        assert!(page.contains("CPU 0, core 0; busy 83.0 %"), "{page}");
        let (text, page) = texts(&topology(&machine, &layout, [None, None]));
        assert!(!text.contains("busy") && !page.contains("busy"), "{text}\n{page}");
    }

    #[test]
    fn marks_follow_the_alphabet_twice() {
        assert_eq!([0, 25, 26, 51, 52].map(letter), ['A', 'Z', 'a', 'z', '#']);
    }
}
