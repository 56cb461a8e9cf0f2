//! Devices of plug and play, each with the interrupt that it has.

use super::super::kernel::config::{InterruptLine, NETWORK, PnpDevice, class_name};
use crate::event::Device;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Limit of devices and of interrupts.
const DEVICES_MAX: usize = 16_384;

/// What was seen of the devices.
#[derive(Debug, Default)]
pub struct Devices {
    /// By instance id, in the order of the file.
    devices: BTreeMap<String, PnpDevice>,
    interrupts: BTreeMap<String, (i32, u64)>,
}

impl Devices {
    /// Adds a device. Returns how many were left out because of the limit.
    pub fn add(&mut self, device: PnpDevice) -> u64 {
        let key = device.instance.to_ascii_uppercase();
        if self.devices.len() >= DEVICES_MAX && !self.devices.contains_key(&key) {
            return 1;
        }
        self.devices.insert(key, device);
        0
    }

    /// Remembers the interrupt of a device.
    pub fn interrupts(&mut self, line: &InterruptLine) {
        if self.interrupts.len() < DEVICES_MAX {
            self.interrupts.insert(line.device.to_ascii_uppercase(), (line.irq, line.affinity));
        }
    }

    /// Those that interrupt, and network adapters. A device without an event of its own has its id
    /// and interrupt only.
    pub fn events(&self) -> Vec<Device> {
        let unknown = self.interrupts.iter().filter(|(id, _)| !self.devices.contains_key(*id));
        let unknown = unknown.map(|(id, _)| self.event(id, None));
        let known = self.devices.iter().map(|(id, device)| self.event(id, Some(device)));
        let is_network = |device: &Device| device.class.as_deref() == Some(NETWORK);
        known.chain(unknown).filter(|it| it.irq.is_some() || is_network(it)).collect()
    }

    fn event(&self, id: &str, device: Option<&PnpDevice>) -> Device {
        let text = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        let interrupt = self.interrupts.get(id);
        Device {
            name: device.and_then(|device| text(&device.name)),
            instance: device.map_or(id, |device| &device.instance).into(),
            class: device.and_then(|device| text(&class_name(&device.class))),
            driver: device.and_then(|device| text(&device.service)),
            filters: device.and_then(|device| text(&device.filters.join(", "))),
            irq: interrupt.map(|(irq, _)| *irq),
            affinity: interrupt.map(|(_, affinity)| *affinity).filter(|&affinity| affinity > 0),
            node: None,
        }
    }
}
