//! A machine from the pieces of pasted texts.
//!
//! Owns which value of which output becomes which field of [`Machine`]. What no output says stays unknown; what is
//! assumed instead is written to [`Machine::assumptions`]. It reads no files: that is [`super::bundle`].

use std::collections::BTreeMap;

use super::processes::{PROCESSES_MAX, Process};
use super::read::{
    AdapterRss, AdvancedProperty, CPUS_MAX, Features, Interrupt, Interrupts, ListedAdapter,
    LogicalProcessors, Lscpu, LscpuRow, Piece, Power, ServerProcess,
};
use super::topology::{Adapter, Cpu, Kind, Machine, System};
use pasted::Pasted;

mod counted;
mod limits;
mod pasted;
#[cfg(test)]
mod tests;

/// Adapters of one machine.
pub(crate) const CARDS_MAX: usize = 256;

/// Failures that are kept.
const FAILURES_MAX: usize = 100;

/// Makes a machine of pieces. Windows if one of them is an output of Windows.
pub fn assemble(pieces: &[Piece]) -> Machine {
    let mut machine = Machine::default();
    add(&mut machine, pieces);
    if machine.cpus.is_empty() {
        add_rss_processors(&mut machine);
    }
    if let (true, Some(interrupts)) = (machine.cpus.is_empty(), interrupts(pieces).next()) {
        counted::add_cpus(&mut machine, interrupts);
    }
    machine
}

/// Adds pieces to a machine. Pieces whose adapter is not named belong to the only adapter, if there is one.
pub(crate) fn add(machine: &mut Machine, pieces: &[Piece]) {
    for piece in pieces {
        add_one(machine, piece);
    }
    if machine.cards.is_empty() {
        interrupts(pieces).for_each(|one| counted::add_adapters(machine, one));
    }
    let files = Pasted::new(pieces);
    files.add(machine);
    // An adapter's interrupts are found by its name: all names must be known.
    interrupts(pieces).for_each(|one| add_interrupts(machine, one, &files));
    pieces.iter().for_each(|piece| add_pci(machine, piece));
    machine.cards.iter_mut().for_each(settle);
}

/// A network adapter on the bus is one of the adapters whose names are known by now.
fn add_pci(machine: &mut Machine, piece: &Piece) {
    let Piece::PciDevice(device) = piece else { return };
    let mut cards = machine.cards.iter_mut();
    if let Some(card) = cards.find(|card| card.bus.as_ref() == Some(&device.bus)) {
        card.node = card.node.or(device.node);
        card.pci.update(&device.link);
    }
}

fn add_power(machine: &mut Machine, power: &Power) {
    let is_new = |governor: &&String| !machine.governors.contains(governor);
    let governors: Vec<String> = power.governors.iter().filter(is_new).cloned().collect();
    machine.governors.extend(governors);
    if machine.idle.is_empty() {
        machine.idle.clone_from(&power.idle);
    }
    if power.plan.is_some() {
        machine.system = System::Windows;
        machine.power_plan.clone_from(&power.plan);
    }
}

fn interrupts(pieces: &[Piece]) -> impl Iterator<Item = &Interrupts> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Interrupts(interrupts) => Some(interrupts),
        _ => None,
    })
}

fn add_one(machine: &mut Machine, piece: &Piece) {
    match piece {
        Piece::AdapterRss(rss) => add_rss(machine, rss),
        Piece::AdapterHardware(hardware) => {
            machine.system = System::Windows;
            if let Some(card) = card(machine, Some(&hardware.name)) {
                card.node = hardware.node.or(card.node);
                card.bus = hardware.bus.clone().or(card.bus.take());
                card.description = hardware.description.clone().or(card.description.take());
                card.pci.update(&hardware.link);
            }
        }
        Piece::Power(power) => add_power(machine, power),
        Piece::Adapter(adapter) => add_adapter(machine, adapter),
        Piece::AdvancedProperty(property) => add_property(machine, property),
        Piece::MultichannelConnection(connection) => {
            machine.system = System::Windows;
            machine.multichannel.push(connection.clone());
        }
        Piece::ServerInterface(interface) => {
            machine.system = System::Windows;
            machine.interfaces.push(interface.clone());
        }
        Piece::Processors(processors) => add_processors(machine, processors),
        Piece::Channels(channels) => {
            if let Some(card) = card(machine, channels.device.as_deref()) {
                card.queues_max = channels.receive_max().or(card.queues_max);
                card.rss.queues = channels.receive().or(card.rss.queues);
            }
        }
        Piece::Indirection(indirection) => {
            if let Some(card) = card(machine, indirection.device.as_deref()) {
                card.rss.queue_table.clone_from(&indirection.table);
                card.rss.key.clone_from(&indirection.key);
                card.rss.rings = indirection.rings.or(card.rss.rings);
            }
        }
        Piece::Features(features) => add_features(machine, features),
        Piece::Driver(driver) => {
            if let Some(card) = card(machine, driver.device.as_deref()) {
                card.driver = Some(driver.driver.clone()).filter(|driver| !driver.is_empty());
                card.bus = driver.bus.clone().or(card.bus.take());
            }
        }
        Piece::Coalescing(coalescing) => {
            if let Some(card) = card(machine, coalescing.device.as_deref()) {
                card.moderation.is_adaptive = coalescing.is_adaptive_rx;
                card.moderation.delay_usecs = coalescing.rx_usecs;
                card.moderation.frames = coalescing.rx_frames;
            }
        }
        Piece::Rings(rings) => {
            if let Some(card) = card(machine, rings.device.as_deref()) {
                card.ring = rings.rx;
                card.ring_max = rings.rx_max;
            }
        }
        Piece::Statistics(statistics) => {
            if let Some(card) = card(machine, statistics.device.as_deref()) {
                card.losses = statistics.receive_losses();
                card.received = statistics.received().or(card.received);
            }
        }
        Piece::Settings(settings) => {
            if let Some(card) = card(machine, settings.device.as_deref()) {
                card.bits_per_second = settings.bits_per_second.or(card.bits_per_second);
                card.is_up = settings.has_link.or(card.is_up);
            }
        }
        Piece::Lscpu(lscpu) if machine.cpus.is_empty() => add_lscpu(machine, lscpu),
        Piece::LscpuTable(rows) => add_lscpu_table(machine, rows),
        Piece::Softirqs(softirqs) => {
            machine.receive_softirqs =
                softirqs.cpus.iter().copied().zip(softirqs.net_rx.iter().copied()).collect();
        }
        Piece::Softnet(rows) => machine.softnet.clone_from(rows),
        Piece::ServerProcess(process) => add_process(machine, process),
        Piece::Failure(message) if machine.failures.len() < FAILURES_MAX => {
            machine.failures.push(message.clone())
        }
        Piece::Failure(_) => {}
        // The client's interfaces are those of another machine, or the same ones under another name.
        Piece::ClientInterface(_)
        | Piece::Lscpu(_)
        | Piece::Interrupts(_)
        | Piece::PciDevice(_)
        | Piece::SystemFiles(_)
        | Piece::NotNeeded(_) => {}
    }
}

/// Windows: the SMB server is the process System, with the number 4. A mask is one of the processor group 0 where there
/// is no other.
fn add_process(machine: &mut Machine, read: &ServerProcess) {
    machine.system = System::Windows;
    let processes = &mut machine.processes;
    if processes.list.len() >= PROCESSES_MAX {
        processes.beyond_limit = processes.beyond_limit.saturating_add(1);
        return;
    }
    let mask = read.affinity.unwrap_or(0);
    processes.list.push(Process {
        id: read.id,
        name: read.name.clone(),
        is_kernel: read.id == 4,
        allowed: (0..64).filter(|bit| mask >> bit & 1 == 1).map(|bit| (0, bit)).collect(),
        ..Process::default()
    });
}

/// The adapter of that name, which is added if it is new. Without a name: the only one.
pub(crate) fn card<'a>(machine: &'a mut Machine, name: Option<&str>) -> Option<&'a mut Adapter> {
    let Some(name) = name else {
        return match &mut machine.cards[..] {
            [card] => Some(card),
            _ => None,
        };
    };
    let position = machine.cards.iter().position(|card| card.name == name);
    if position.is_none() && machine.cards.len() < CARDS_MAX {
        machine.cards.push(Adapter { name: name.to_owned(), ..Adapter::default() });
    }
    match position {
        Some(position) => machine.cards.get_mut(position),
        None => machine.cards.last_mut().filter(|card| card.name == name),
    }
}

fn add_rss(machine: &mut Machine, read: &AdapterRss) {
    machine.system = System::Windows;
    let Some(card) = card(machine, Some(&read.name)) else { return };
    card.description = read.description.clone().or(card.description.take());
    let rss = &mut card.rss;
    rss.is_enabled = read.is_enabled.or(rss.is_enabled);
    rss.queues = read.queues.or(rss.queues);
    rss.profile = read.profile.clone().or(rss.profile.take());
    rss.base = read.base.or(rss.base);
    rss.last = read.last.or(rss.last);
    rss.processors_max = read.processors_max.or(rss.processors_max);
    rss.node = read.node.or(rss.node);
    rss.processors.clone_from(&read.processors);
    rss.processor_table.clone_from(&read.table);
}

fn add_adapter(machine: &mut Machine, adapter: &ListedAdapter) {
    machine.system = System::Windows;
    let Some(card) = card(machine, Some(&adapter.name)) else { return };
    card.description = adapter.description.clone().or(card.description.take());
    card.bits_per_second = adapter.bits_per_second.or(card.bits_per_second);
    card.driver = adapter.driver.clone().or(card.driver.take());
    card.is_up = adapter.status.as_ref().map(|status| status == "Up").or(card.is_up);
    if adapter.is_virtual == Some(true) {
        card.kind = Kind::Virtual;
    }
}

/// Keywords: "Standardized INF Keywords for RSS" and "... for Interrupt Moderation" of the Windows driver documentation.
fn add_property(machine: &mut Machine, property: &AdvancedProperty) {
    machine.system = System::Windows;
    let Some(card) = card(machine, Some(&property.name)) else { return };
    let number = || property.values.first()?.trim().parse::<u32>().ok();
    // Drivers write keywords in either case.
    match property.keyword.to_ascii_lowercase().as_str() {
        "*interruptmoderation" => card.moderation.is_on = number().map(|value| value != 0),
        "*rss" => card.rss.is_enabled = card.rss.is_enabled.or(number().map(|value| value != 0)),
        "*numrssqueues" => {
            card.rss.queues = card.rss.queues.or(number());
            card.queue_counts =
                property.allowed.iter().filter_map(|one| one.parse().ok()).collect();
            card.queue_counts.sort_unstable();
            let most = card.queue_counts.last().copied().or(property.most);
            card.queues_max = most.filter(|most| *most > 0).or(card.queues_max);
        }
        // 65535: any node.
        "*numanodeid" => card.rss.node = card.rss.node.or(number().filter(|node| *node != 65_535)),
        "*receivebuffers" => card.ring = card.ring.or(number()),
        _ => {}
    }
}

fn add_processors(machine: &mut Machine, read: &LogicalProcessors) {
    machine.system = System::Windows;
    let cpus = read.processors.iter().take(CPUS_MAX).map(|processor| Cpu {
        number: processor.number,
        group: processor.group,
        socket: processor.package,
        node: processor.node,
        core: processor.core,
        thread: processor.thread,
        is_online: true,
    });
    machine.cpus = cpus.collect();
}

/// CPUs from what Windows lists for RSS, which has one hardware thread of each core. Those that are equally far
/// from each adapter are taken for a node.
fn add_rss_processors(machine: &mut Machine) {
    let mut distances = std::collections::BTreeMap::new();
    for (place, card) in machine.cards.iter().enumerate() {
        for processor in &card.rss.processors {
            let of_cards: &mut Vec<(usize, u32)> =
                distances.entry((processor.group, processor.number)).or_default();
            of_cards.push((place, processor.distance));
        }
    }
    if distances.is_empty() {
        return;
    }
    let mut nodes: Vec<(u32, Vec<(usize, u32)>)> = Vec::new();
    for (core, ((group, number), distances)) in (0u32..).zip(distances.into_iter().take(CPUS_MAX)) {
        let key = (group, distances);
        let node = nodes.iter().position(|node| *node == key).unwrap_or(nodes.len());
        if node == nodes.len() {
            nodes.push(key);
        }
        let node = u32::try_from(node).unwrap_or(0);
        let (socket, thread, is_online) = (node, 0, true);
        machine.cpus.push(Cpu { number, group, socket, node, core, thread, is_online });
    }
    for (node, (_, distances)) in (0u32..).zip(&nodes) {
        for (place, _) in distances.iter().filter(|(_, distance)| *distance == 0) {
            if let Some(card) = machine.cards.get_mut(*place) {
                card.node.get_or_insert(node);
            }
        }
    }
    machine.are_nodes_assumed = true;
    machine.assumptions.push(
        "The CPUs are those of Get-NetAdapterRss, a core each; equally distant ones are a node with a socket of its own (Get-NetAdapterHardwareInfo and the script of --print-windows-script say it exactly)"
            .to_owned(),
    );
}

fn add_features(machine: &mut Machine, features: &Features) {
    let Some(card) = card(machine, features.device.as_deref()) else { return };
    if features.is_private {
        card.has_flow_director = features.get("flow-director-atr").or(card.has_flow_director);
        return;
    }
    // `receive-hashing` is whether the stack gets the hash, not whether RSS spreads.
    card.has_ntuple_filters = features.get("ntuple-filters").or(card.has_ntuple_filters);
    card.has_receive_hash = features.get("receive-hashing").or(card.has_receive_hash);
}

fn add_lscpu_table(machine: &mut Machine, rows: &[LscpuRow]) {
    let mut threads = BTreeMap::new();
    machine.cpus.clear();
    // /proc/cpuinfo has sockets and no nodes.
    let has_nodes = rows.iter().any(|row| row.node.is_some());
    let sockets: std::collections::BTreeSet<_> = rows.iter().map(|row| row.socket).collect();
    if !has_nodes && sockets.len() > 1 {
        machine.are_nodes_assumed = true;
        machine.assumptions.push("Each socket is taken for a NUMA node".to_owned());
    }
    for row in rows.iter().take(CPUS_MAX) {
        let socket = row.socket.unwrap_or(0);
        // Without a core, as offline CPUs are: a core of its own, above all others.
        let core = row.core.unwrap_or(row.cpu.saturating_add(1 << 20));
        let thread = threads.entry((socket, core)).or_insert(0u32);
        machine.cpus.push(Cpu {
            number: row.cpu,
            group: 0,
            socket,
            node: row.node.unwrap_or(if has_nodes { 0 } else { socket }),
            core,
            thread: *thread,
            is_online: row.is_online.unwrap_or(true),
        });
        *thread += 1;
    }
}

/// The summary does not say which CPUs share a core.
fn add_lscpu(machine: &mut Machine, lscpu: &Lscpu) {
    let threads = lscpu.threads_per_core.unwrap_or(1).max(1);
    let online = u32::try_from(lscpu.online.len()).unwrap_or(u32::MAX);
    let all = lscpu
        .online
        .iter()
        .map(|cpu| (*cpu, true))
        .chain(lscpu.offline.iter().map(|cpu| (*cpu, false)));
    let cores = (online / threads).max(1);
    let cores_per_socket = lscpu.cores_per_socket.unwrap_or(cores).max(1);
    let node_of: BTreeMap<u32, u32> =
        lscpu.nodes.iter().flat_map(|(node, cpus)| cpus.iter().map(|cpu| (*cpu, *node))).collect();
    for (number, is_online) in all.take(CPUS_MAX) {
        let core = if is_online { number % cores } else { number };
        let node = node_of.get(&number).copied().unwrap_or(0);
        let thread = if is_online { number / cores } else { 0 };
        let socket = match lscpu.sockets {
            Some(sockets)
                if sockets > 1 && lscpu.nodes.len() == usize::try_from(sockets).unwrap_or(0) =>
            {
                node
            }
            Some(sockets) => (core / cores_per_socket).min(sockets.saturating_sub(1)),
            None => 0,
        };
        machine.cpus.push(Cpu { number, group: 0, socket, node, core, thread, is_online });
    }
    if threads > 1 {
        machine.assumptions.push(format!(
            "lscpu's summary does not say which CPUs share a core; CPU n and CPU n + {cores} are assumed to (lscpu -e shows it)"
        ));
    }
}

/// Gives each adapter the interrupts of its receive queues.
fn add_interrupts(machine: &mut Machine, interrupts: &Interrupts, files: &Pasted) {
    for card in &mut machine.cards {
        // The interrupts of its device are known already, with the CPUs that they may go to.
        let known: BTreeMap<u32, Vec<u32>> =
            std::mem::take(&mut card.rss.interrupts).into_iter().collect();
        let is_mine =
            |row: &&Interrupt| known.contains_key(&row.number) || belongs(&row.name, card);
        let mut rows: Vec<_> = interrupts.rows.iter().filter(|row| is_mine(row)).collect();
        if rows.iter().any(|row| is_receive_queue(&row.name)) {
            rows.retain(|row| is_receive_queue(&row.name));
        }
        rows.sort_by_key(|row| (queue(&row.name), row.number));
        let allowed =
            |number: &u32| known.get(number).cloned().unwrap_or_else(|| files.affinity(*number));
        card.rss.interrupts = rows.iter().map(|row| (row.number, allowed(&row.number))).collect();
        let counts = rows.iter().map(|row| {
            let counts = interrupts.cpus.iter().copied().zip(row.counts.iter().copied());
            counts.filter(|(_, count)| *count > 0).collect()
        });
        card.rss.interrupt_counts = counts.collect();
    }
}

/// Whether an interrupt's name is that of an adapter: `eth0-TxRx-3`, `ice-eth0-TxRx-3`, `mlx5_comp3@pci:0000:3b:00.0`.
pub(crate) fn belongs(name: &str, card: &Adapter) -> bool {
    let is_device = name.split(['-', ' ', ',', '@', ':', '.']).any(|word| word == card.name)
        || name
            .strip_prefix(&card.name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '_', ' ']));
    is_device || card.bus.as_ref().is_some_and(|bus| bus.len() > 4 && name.contains(bus.as_str()))
}

/// Whether an interrupt is one of a receive queue, by the names that drivers give.
pub(crate) fn is_receive_queue(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // Intel's flow director has a vector of its own, with the name of a queue.
    let is_other = [
        "async",
        "mbx",
        "misc",
        "config",
        "output",
        "ctrl",
        "cmd",
        "pages",
        "-tx-",
        "fdir",
        "flow-director",
    ]
    .iter()
    .any(|part| name.contains(part));
    let is_queue =
        ["rx", "input", "comp", "-fp-", "queue", "-q"].iter().any(|part| name.contains(part));
    is_queue && !is_other && queue(&name).is_some()
}

/// The number of an interrupt's queue: the last one of its name, before the address of its device.
fn queue(name: &str) -> Option<u32> {
    let name = name.split('@').next()?;
    let end = name.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let digits =
        end.rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |position| position + 1);
    end.get(digits..)?.parse().ok()
}

/// What follows from the other values of an adapter.
pub(crate) fn settle(card: &mut Adapter) {
    let driver = card.driver.as_deref().unwrap_or_default().to_ascii_lowercase();
    let description = card.description.as_deref().unwrap_or_default().to_ascii_lowercase();
    let is_function = ["ixgbevf", "iavf", "igbvf", "i40evf", "bnxt_vf", "mana"]
        .contains(&driver.as_str())
        || description.contains("virtual function");
    let is_virtual = [
        "hv_netvsc",
        "virtio_net",
        "vmxnet3",
        "vif",
        "xen_netfront",
        "gve",
        "ena",
        "veth",
        "tun",
        "netvsc.sys",
    ]
    .contains(&driver.as_str())
        || ["hyper-v", "vmxnet3", "virtio", "xen "].iter().any(|part| description.contains(part));
    if is_function {
        card.kind = Kind::VirtualFunction;
    } else if is_virtual && card.kind == Kind::Physical {
        card.kind = Kind::Virtual;
    }
    if ["bonding", "team"].contains(&driver.as_str()) || description.contains("multiplexor") {
        card.master.get_or_insert_with(|| card.name.clone());
    }
    card.rss_queue_limit = limits::queue_limit(card);
}
