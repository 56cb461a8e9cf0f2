//! What a plan of cores needs of recordings: their connections, and of traces the machine and who received.

use std::collections::BTreeMap;

use smbscope_analysis::processors::{Limits, Processors, Report};
use smbscope_plan::cores::load::{Received, ReceivedCpu};
use smbscope_plan::cores::topology::System;
use smbscope_plan::cores::traced::{Device, Processor, Trace};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::tables::{self, Connection};

use super::pass::{Analysis, Monitor, pass};

/// Connections that are kept; more say nothing more about a hash.
const CONNECTIONS_MAX: usize = 1 << 20;
/// CPUs and devices that are kept.
const ROWS_MAX: usize = 1 << 16;

/// What recordings say about receive work.
#[derive(Debug, Default)]
pub struct Recorded {
    pub connections: Vec<Connection>,
    /// Connections that were not kept.
    pub beyond_limit: u64,
    /// Of CPU traces, if the recordings have any.
    pub trace: Option<Traced>,
}

/// What CPU traces say.
#[derive(Debug)]
pub struct Traced {
    pub machine: Trace,
    pub received: Received,
}

#[derive(Default)]
struct Rows {
    connections: Vec<Connection>,
    beyond_limit: u64,
    cpus: Vec<tables::Cpu>,
    devices: Vec<tables::Device>,
}

/// Reads connections and traces of the inputs.
pub fn recorded(source: &Source, monitor: &dyn Monitor) -> anyhow::Result<Recorded> {
    let mut rows = Rows::default();
    let mut processors = Processors::new(Limits::default());
    pass(source, &mut [&mut rows, &mut processors], monitor)?;
    let report = processors.finish();
    let has_trace = !report.processors.is_empty();
    let trace = has_trace.then(|| traced(&report, &rows.cpus, &rows.devices));
    Ok(Recorded { connections: rows.connections, beyond_limit: rows.beyond_limit, trace })
}

fn traced(report: &Report, cpus: &[tables::Cpu], devices: &[tables::Device]) -> Traced {
    let is_windows = report.traces.iter().any(|trace| trace.format.starts_with("Windows"));
    let system = if is_windows { System::Windows } else { System::Linux };
    let small = |number: u64| u32::try_from(number).ok();
    let processors: Vec<Processor> = cpus
        .iter()
        .map(|row| Processor {
            index: row.cpu,
            group: row.processor_group.and_then(small).zip(row.processor_number.and_then(small)),
            node: row.node.and_then(small),
            socket: row.socket.and_then(small),
            core: row.core.and_then(small),
            thread: row.thread.and_then(small),
            is_hyper_threaded: row.hyper_threading,
        })
        .collect();
    let is_network = |row: &&tables::Device| row.class.as_deref() == Some("net");
    let of_log = devices.iter().filter(is_network).map(|row| Device {
        name: row.name.clone().unwrap_or_else(|| row.instance.clone()),
        instance: Some(row.instance.clone()),
        driver: row.driver.clone(),
        queues: None,
    });
    let polled = report.devices.iter().filter(|device| device.work.is_some());
    let of_polls = polled.clone().map(|device| Device {
        name: device.device.clone(),
        queues: small(device.queues).filter(|&queues| queues > 0),
        ..Device::default()
    });
    let devices: Vec<Device> = if is_windows { of_log.collect() } else { of_polls.collect() };
    let drivers: Vec<String> = devices.iter().filter_map(|device| device.driver.clone()).collect();
    let receive = report.receive(&drivers);
    let by_cpu: BTreeMap<u64, i64> = receive.cpus.iter().copied().collect();
    let id = |cpu: u64| {
        let known = processors.iter().find(|processor| processor.index == cpu);
        known.and_then(|processor| processor.group).or_else(|| Some((0, small(cpu)?)))
    };
    let unsigned = |ns: i64| u64::try_from(ns).unwrap_or(0);
    let received = Received {
        length_ns: unsigned(report.length_ns),
        cpus: report
            .processors
            .iter()
            .filter_map(|one| {
                let receive_ns = by_cpu.get(&one.cpu).copied().unwrap_or(0);
                let interrupts = one.busy_ns().unwrap_or(0);
                let other = interrupts.saturating_add(one.thread_ns.unwrap_or(0));
                Some(ReceivedCpu {
                    cpu: id(one.cpu)?,
                    receive_ns: unsigned(receive_ns),
                    other_ns: unsigned(other.saturating_sub(receive_ns)),
                    is_idle_known: one.thread_ns.is_some(),
                })
            })
            .collect(),
        packets: receive.packets,
        cards: polled.filter_map(|device| Some((device.device.clone(), device.work?))).collect(),
        counted: receive.names.iter().map(|(kind, name)| format!("{kind} {name}")).collect(),
    };
    Traced { machine: Trace { system, processors, devices }, received }
}

impl Analysis for Rows {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Connections, Table::Cpus, Table::Devices]
    }

    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Connections(rows) => {
                let room = CONNECTIONS_MAX.saturating_sub(self.connections.len());
                self.connections.extend(rows.iter().take(room).cloned());
                self.beyond_limit += rows.len().saturating_sub(room) as u64;
            }
            Part::Cpus(rows) => {
                let room = ROWS_MAX.saturating_sub(self.cpus.len());
                self.cpus.extend(rows.iter().take(room).cloned());
            }
            Part::Devices(rows) => {
                let room = ROWS_MAX.saturating_sub(self.devices.len());
                self.devices.extend(rows.iter().take(room).cloned());
            }
            _ => {}
        }
        Ok(())
    }
}
