//! Which device an irq belongs to: /proc/interrupts has the names that drivers chose, /sys the irqs of
//! each network interface and disk (Documentation/ABI/testing/sysfs-bus-pci, `msi_irqs`).

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::interrupts;
use crate::event::Device;
use crate::linux::device::of_handler;

/// Most irqs.
const IRQS_MAX: usize = 65_536;
/// Most network interfaces.
const INTERFACES_MAX: usize = 1_024;

/// Irqs and their devices.
#[derive(Debug, Default)]
pub struct Devices {
    handlers: HashMap<u32, String>,
    devices: HashMap<u32, String>,
}

impl Devices {
    /// Reads /proc/interrupts (its text) and the classes `net` and `block` below `class`
    /// (`/sys/class`).
    pub fn read(interrupts: &str, class: &Path) -> Devices {
        let (_, lines) = interrupts::read(interrupts);
        let handlers = lines.iter().filter_map(|line| Some((line.irq()?, line.handlers()?)));
        let handlers = handlers.map(|(irq, name)| (irq, name.to_owned())).take(IRQS_MAX).collect();
        let mut devices = HashMap::new();
        // A network interface names its irqs better than the disk of the same controller.
        for class in ["block", "net"].map(|name| class.join(name)) {
            for entry in fs::read_dir(class).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                for irq in irqs_of(&entry.path().join("device")) {
                    if devices.len() < IRQS_MAX {
                        devices.insert(irq, name.clone());
                    }
                }
            }
        }
        Devices { handlers, devices }
    }

    /// The names of an irq's handlers.
    pub fn handler(&self, irq: u32) -> Option<&str> {
        self.handlers.get(&irq).map(String::as_str)
    }

    /// Device and queue of a handler.
    pub fn place<'a>(&'a self, irq: u32, handler: &'a str) -> (Option<&'a str>, Option<u32>) {
        let (device, queue) = of_handler(handler);
        (self.devices.get(&irq).map(String::as_str).or(device), queue)
    }
}

/// Network interfaces below `class` (`/sys/class`), with their drivers and the NUMA nodes of their buses.
pub fn interfaces(class: &Path) -> Vec<Device> {
    let entries = fs::read_dir(class.join("net")).into_iter().flatten().flatten();
    let mut interfaces: Vec<_> = entries
        .take(INTERFACES_MAX)
        .filter_map(|entry| {
            let name: Arc<str> = entry.file_name().to_str()?.into();
            let device = entry.path().join("device");
            // Interfaces without hardware have no device.
            let place = fs::canonicalize(&device).ok()?;
            let of_bus = |file: &str| {
                [&device, &device.join("..")]
                    .into_iter()
                    .find_map(|folder| fs::read_to_string(folder.join(file)).ok())
            };
            let driver = fs::read_link(device.join("driver")).ok();
            let driver = driver.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
            Some(Device {
                name: Some(name),
                instance: place.file_name()?.to_str()?.into(),
                class: Some("net".into()),
                driver: driver.map(Arc::from),
                // -1 on a machine with one node.
                node: of_bus("numa_node").and_then(|text| text.trim().parse().ok()),
                ..Device::default()
            })
        })
        .collect();
    interfaces.sort_by(|one, other| one.name.cmp(&other.name));
    interfaces
}

/// Irqs of a device, or of the bus device that it is on (virtio).
fn irqs_of(device: &Path) -> Vec<u32> {
    for folder in [device.to_owned(), device.join("..")] {
        let entries = fs::read_dir(folder.join("msi_irqs")).into_iter().flatten().flatten();
        let irqs: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        if !irqs.is_empty() {
            return irqs;
        }
        let irq = fs::read_to_string(folder.join("irq")).ok();
        if let Some(irq) = irq.and_then(|text| text.trim().parse().ok()).filter(|&irq| irq != 0) {
            return vec![irq];
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_irq_belongs_to_the_interface_of_its_bus_device() {
        let root = tempfile::tempdir().unwrap();
        let bus = root.path().join("devices/0000:00:04.0");
        for folder in ["msi_irqs", "virtio3/net/eth0"] {
            fs::create_dir_all(bus.join(folder)).unwrap();
        }
        for irq in ["41", "42"] {
            fs::write(bus.join("msi_irqs").join(irq), "msix\n").unwrap();
        }
        std::os::unix::fs::symlink(bus.join("virtio3"), bus.join("virtio3/net/eth0/device"))
            .unwrap();
        let class = root.path().join("class/net");
        fs::create_dir_all(&class).unwrap();
        std::os::unix::fs::symlink(bus.join("virtio3/net/eth0"), class.join("eth0")).unwrap();
        let text = " CPU0\n 41: 5 PCI-MSIX-0000:00:04.0 1-edge virtio3-input.0\n 50: 1 IO-APIC 5-edge nvme0q3\n";
        let devices = Devices::read(text, &root.path().join("class"));
        assert_eq!(devices.handler(41), Some("virtio3-input.0"));
        assert_eq!(devices.place(41, "virtio3-input.0"), (Some("eth0"), Some(0)));
        // Without /sys the name of the handler remains.
        assert_eq!(devices.place(50, "nvme0q3"), (Some("nvme0"), Some(3)));
        assert_eq!(devices.place(7, "timer"), (None, None));
    }

    #[test]
    fn interfaces_have_the_node_of_their_bus() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("class");
        for (name, bus, node) in [("eth1", "0000:41:00.1", "1\n"), ("eth0", "0000:01:00.0", "-1\n")]
        {
            let device = root.path().join("devices").join(bus);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("numa_node"), node).unwrap();
            let interface = class.join("net").join(name);
            fs::create_dir_all(&interface).unwrap();
            std::os::unix::fs::symlink(&device, interface.join("device")).unwrap();
        }
        // Without hardware.
        fs::create_dir_all(class.join("net/lo")).unwrap();
        let found = interfaces(&class);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_deref().unwrap(), &*one.instance, one.node))
            .collect();
        assert_eq!(found, [("eth0", "0000:01:00.0", None), ("eth1", "0000:41:00.1", Some(1))]);
        assert_eq!(interfaces(root.path()), []);
    }
}
