//! The plan of cores: from a machine's settings, its traces and recordings to the layout, the commands, and what they
//! bring.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anyhow::Context as _;
use smbscope_plan::cores::added::{self, Wanted};
use smbscope_plan::cores::bundle::Bundle;
use smbscope_plan::cores::commands::{Request, commands};
use smbscope_plan::cores::findings::find;
use smbscope_plan::cores::layout;
use smbscope_plan::cores::load::load;
use smbscope_plan::cores::prediction::{Connection, Prediction, predict};
use smbscope_plan::cores::topology::{Cpu, Machine, System};
use smbscope_plan::cores::traced;
use smbscope_report::cores::CoresPlan;
use smbscope_tables::tables;

use super::rss_inputs::Recorded;
use crate::exit::Failure;

/// What a plan is made from.
#[derive(Debug)]
pub struct Inputs {
    /// The machine as its settings describe it; without them it is what the trace shows.
    pub settings: Option<Bundle>,
    pub recorded: Recorded,
    /// The adapter by which the machine is reached.
    pub management: Option<String>,
    /// The adapter that the recorded connections used.
    pub adapter: Option<String>,
    /// Whether the recorded connections are placed.
    pub places_connections: bool,
    /// Adapters that are not there: what if they were added.
    pub added: Option<Wanted>,
}

/// Makes the plan; its version and the names of its inputs are left to the caller.
pub fn plan(inputs: Inputs) -> anyhow::Result<CoresPlan> {
    let Inputs { settings, mut recorded, management, adapter, places_connections, added } = inputs;
    let trace = recorded.trace.take();
    let Bundle { mut machine, unknown } = settings.unwrap_or_else(|| Bundle {
        machine: trace.as_ref().map(|trace| traced::machine(&trace.machine)).unwrap_or_default(),
        ..Bundle::default()
    });
    if let Some(trace) = trace {
        add_trace(&mut machine, &trace.machine)?;
        machine.received = Some(trace.received);
    }
    for (what, name) in [("--management", &management), ("--adapter", &adapter)] {
        if let Some(name) = name {
            index(&machine, name).with_context(|| what.to_owned())?;
        }
    }
    let layout = layout::plan(&machine);
    let with_flows = machine.cards.iter().filter(|card| !card.rss.flows.is_empty());
    let request = Request {
        management,
        flow_entries: machine.flow_entries,
        flow_counts: with_flows.map(|card| (card.name.clone(), card.rss.flows.clone())).collect(),
    };
    let commands = commands(&machine, &layout, &request);
    let layout = layout.as_commanded(&commands);
    let mut plan = CoresPlan {
        version: String::new(),
        inputs: Vec::new(),
        findings: find(&machine),
        machine,
        layout,
        commands,
        prediction: None,
        load: None,
        added: None,
        unknown_lines: unknown.count(),
    };
    // A trace without packets has no connections, which is not a fault.
    let is_trace_only = recorded.connections.is_empty() && plan.machine.received.is_some();
    if places_connections && !is_trace_only {
        plan.prediction = Some(placed(&plan, &recorded, adapter.as_deref())?);
    }
    plan.added = added.map(|wanted| {
        let tcp = recorded.connections.iter().filter_map(|row| received_on(row, 0));
        let recorded: Vec<_> = tcp.map(|one| (one.client, one.packets)).collect();
        added::added(&plan.machine, &wanted, &recorded)
    });
    if let Some(received) = &plan.machine.received {
        plan.load = load(&plan.machine, &plan.layout, received, plan.prediction.as_ref());
    }
    let is_better = match (&plan.load, &plan.prediction) {
        (Some(load), _) => load.is_better(&plan.machine, &plan.layout),
        (None, Some(prediction)) => prediction.is_better(&plan.machine),
        (None, None) => true,
    };
    if !is_better && plan.commands.steps.iter().any(|step| step.details.card.is_some()) {
        plan.commands.drop_without_gain(&plan.machine, &plan.layout);
        plan.layout = plan.layout.as_commanded(&plan.commands);
    }
    Ok(plan)
}

/// The recorded connections, placed by the hash of the adapter that they used.
fn placed(
    plan: &CoresPlan,
    recorded: &Recorded,
    adapter: Option<&str>,
) -> anyhow::Result<Prediction> {
    let card = match (adapter, &plan.machine.cards[..]) {
        (Some(name), _) => index(&plan.machine, name)?,
        (None, [_]) => 0,
        (None, cards) => {
            let names: Vec<_> = cards.iter().map(|card| card.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "--recording: which adapter did its connections use? Give --adapter: {}",
                names.join(", ")
            )));
        }
    };
    let received = &recorded.connections;
    let connections: Vec<_> = received.iter().filter_map(|row| received_on(row, card)).collect();
    let mut prediction = predict(&plan.machine, &plan.layout, &connections);
    prediction.ignored += (received.len() - connections.len()) as u64 + recorded.beyond_limit;
    Ok(prediction)
}

/// Takes CPUs of a trace where the settings have none. Load of another machine would be wrong on this one.
fn add_trace(machine: &mut Machine, trace: &traced::Trace) -> anyhow::Result<()> {
    let name = |system| match system {
        System::Linux => "Linux",
        System::Windows => "Windows",
    };
    let has_settings = !machine.cpus.is_empty() || !machine.cards.is_empty();
    if has_settings && machine.system != trace.system {
        return Err(Failure::usage(format!(
            "the trace is of {}, and the settings are of {}: give those of the same machine",
            name(trace.system),
            name(machine.system)
        )));
    }
    let of_trace = traced::machine(trace);
    if machine.cpus.is_empty() {
        machine.cpus = of_trace.cpus;
        machine.assumptions.extend(of_trace.assumptions);
        return Ok(());
    }
    let known: BTreeSet<_> = machine.cpus.iter().map(|cpu| (cpu.group, cpu.number)).collect();
    let is_other = |cpu: &&Cpu| !known.contains(&(cpu.group, cpu.number));
    let others = of_trace.cpus.iter().filter(is_other).count();
    if others > 0 && machine.are_nodes_assumed {
        take_cpus(machine, of_trace);
    } else if others > 0 {
        machine.assumptions.push(format!(
            "The trace is of the same machine, although it has CPUs that the settings do not list ({others} of {})",
            of_trace.cpus.len()
        ));
    }
    Ok(())
}

/// Takes the CPUs of a trace instead of those that settings limit receive-side scaling to.
fn take_cpus(machine: &mut Machine, of_trace: Machine) {
    machine.assumptions.clear();
    machine.assumptions.push(format!(
        "The trace is of the same machine: its {} CPUs count, of which the settings of receive-side scaling list {}",
        of_trace.cpus.len(),
        machine.cpus.len()
    ));
    let trace_settings = |text: &String| text.starts_with("The trace has adapters and CPUs");
    let assumed = of_trace.assumptions.into_iter().filter(|text| !trace_settings(text));
    machine.assumptions.extend(assumed);
    machine.cpus = of_trace.cpus;
    machine.are_nodes_assumed = false;
    for card in &mut machine.cards {
        let mut near = card.rss.processors.iter().filter(|one| one.distance == 0);
        card.node = near.find_map(|one| {
            let mut cpus = machine.cpus.iter();
            cpus.find(|cpu| (cpu.group, cpu.number) == (one.group, one.number)).map(|cpu| cpu.node)
        });
    }
}

/// A recorded connection as the hash of the adapter sees it. What RDMA and QUIC carry is not spread by TCP ports: `None`.
fn received_on(row: &tables::Connection, card: usize) -> Option<Connection> {
    row.transport.as_deref().is_none_or(|name| name == "tcp").then_some(())?;
    Some(Connection {
        card,
        client: row.client.parse::<IpAddr>().ok()?,
        client_port: u16::try_from(row.client_port).ok()?,
        server: row.server.parse::<IpAddr>().ok()?,
        server_port: u16::try_from(row.server_port).ok()?,
        bytes: row.bytes_to_server,
        packets: row.packets_to_server,
    })
}

fn index(machine: &Machine, name: &str) -> anyhow::Result<usize> {
    machine.cards.iter().position(|card| card.name == name).ok_or_else(|| {
        let names: Vec<_> = machine.cards.iter().map(|card| card.name.as_str()).collect();
        Failure::usage(format!(
            "{name}: the machine has no such adapter; it has {}",
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_rdma_and_quic_are_not_placed() {
        let row = |transport: Option<&str>| tables::Connection {
            transport: transport.map(Into::into),
            client: "10.0.0.1".into(),
            client_port: 50_000,
            server: "10.0.0.2".into(),
            server_port: 445,
            ..Default::default()
        };
        for (transport, is_placed) in [
            (None, true),
            (Some("tcp"), true),
            (Some("roce"), false),
            (Some("iwarp"), false),
            (Some("quic"), false),
        ] {
            assert_eq!(received_on(&row(transport), 0).is_some(), is_placed, "{transport:?}");
        }
        let named = tables::Connection { client: "a name".into(), ..row(None) };
        assert_eq!(received_on(&named, 0), None);
    }
}
