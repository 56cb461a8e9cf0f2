//! Findings about the server's processes.

use super::*;
use crate::cores::processes::Process;

/// Processes of smbd that may use the CPUs of `allowed` and ran last on these.
fn smbd(allowed: std::ops::Range<u32>, last: &[u32]) -> Vec<Process> {
    let process = |(id, last): (u32, &u32)| Process {
        id,
        name: "smbd".into(),
        allowed: allowed.clone().map(|cpu| (0, cpu)).collect(),
        last: Some((0, *last)),
        ..Process::default()
    };
    (1..).zip(last).map(process).collect()
}

fn with_processes(list: Vec<Process>) -> Machine {
    let mut machine = on_linux(&[linux("eth0", &[2, 4])]);
    machine.processes.list = list;
    machine
}

#[test]
fn a_server_confined_to_another_node() {
    nothing(&with_processes(smbd(0..8, &[1, 3])));
    let trouble = (
        FindingKind::ServerConfined,
        json!({ "server": "smbd", "processes": 2, "of": 2, "nodes": [1], "adapter_nodes": [0] }),
    );
    only(&with_processes(smbd(8..16, &[9, 11])), Severity::High, trouble);
}

#[test]
fn a_server_spread_over_nodes() {
    nothing(&with_processes(smbd(0..16, &[1, 3])));
    let trouble = |is_kernel| {
        (
            FindingKind::ServerSpread,
            json!({ "server": "smbd", "by_node": [{"node": 0, "processes": 1}, {"node": 1, "processes": 2}], "adapter_nodes": [0], "is_kernel": is_kernel }),
        )
    };
    let mut list = smbd(0..16, &[1, 9, 11]);
    only(&with_processes(list.clone()), Severity::Medium, trouble(false));
    list.iter_mut().for_each(|process| process.is_kernel = true);
    only(&with_processes(list), Severity::Low, trouble(true));
    // Where the adapter is, is unknown.
    let mut machine = with_processes(smbd(0..16, &[1, 9, 11]));
    machine.cards[0].node = None;
    nothing(&machine);
}

#[test]
fn memory_of_a_server_on_another_node() {
    let with_memory = |foreign: u64, nodes: &[u32]| {
        let mut list = smbd(0..8, &[1]);
        list[0].memory = vec![(0, 80 << 20), (1, foreign << 20)];
        list[0].memory_nodes = nodes.to_vec();
        with_processes(list)
    };
    nothing(&with_memory(20, &[0, 1]));
    let trouble = |foreign: u64, forbidden| {
        (
            FindingKind::ServerMemory,
            json!({ "server": "smbd", "bytes_by_node": [{"node": 0, "bytes": (80 << 20)}, {"node": 1, "bytes": (foreign << 20)}], "measured": 1, "forbidden": forbidden, "adapter_nodes": [0] }),
        )
    };
    only(&with_memory(40, &[0, 1]), Severity::Medium, trouble(40, 0));
    only(&with_memory(20, &[1]), Severity::Medium, trouble(20, 1));
}

#[test]
fn one_server_for_adapters_on_two_nodes() {
    let mut other = linux("eth1", &[10, 12]);
    other.node = Some(1);
    let mut machine = on_linux(&[linux("eth0", &[2, 4]), other]);
    machine.processes.list = smbd(0..16, &[1, 9]);
    let trouble = (
        FindingKind::ServerOfSeveralNodes,
        json!({ "server": "smbd", "processes": 2, "adapter_nodes": [0, 1] }),
    );
    only(&machine, Severity::Low, trouble);
}

#[test]
fn the_server_of_windows_cannot_be_placed() {
    let mut card = windows("Ethernet", 2, &[2, 4]);
    card.node = Some(0);
    let mut machine = on_windows(&[card]);
    nothing(&machine);
    let json = r#"[{"ServerProcessId":4,"ProcessName":"System","ProcessorAffinity":""},
        {"ServerProcessId":900,"ProcessName":"nfssvc","ProcessorAffinity":"65280"}]"#;
    let read = crate::cores::assemble::assemble(&read(json.as_bytes()).unwrap().pieces);
    machine.processes = read.processes;
    let sentences: Vec<String> = find(&machine).into_iter().map(|found| found.what).collect();
    assert_eq!(
        sentences,
        [
            "1 of 1 process of nfssvc may run on node 1 only, and packets arrive on node 0: all their data crosses between \
             nodes.",
            "The SMB server of Windows runs in System, whose threads cannot be placed: choose the node for receive-side \
             scaling instead. Packets arrive on node 0."
        ]
    );
}
