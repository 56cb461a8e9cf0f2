//! The CPUs of this machine: /sys/devices/system/cpu (Documentation/ABI/stable/sysfs-devices-system-cpu).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::event::Cpu;

/// The CPUs that are online below `root` (`/sys/devices/system/cpu`). `cpuinfo` is the text of
/// /proc/cpuinfo, which has frequencies where the folder has none.
pub fn read(root: &Path, cpuinfo: &str) -> Vec<Cpu> {
    let online = fs::read_to_string(root.join("online")).unwrap_or_default();
    list(&online).into_iter().map(|cpu| one(root, cpu, cpuinfo)).collect()
}

/// Numbers of a list such as `0-3,8`.
pub fn list(text: &str) -> BTreeSet<u32> {
    /// Most numbers; Linux has at most 8192 CPUs.
    const MAX: u32 = 8192;
    let mut all = BTreeSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            all.extend(first..=last.min(MAX));
        }
    }
    all
}

fn one(root: &Path, cpu: u32, cpuinfo: &str) -> Cpu {
    let folder = root.join(format!("cpu{cpu}"));
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    // -1 where the machine does not say.
    let number = |name: &str| text(name)?.trim().parse::<u32>().ok();
    let siblings = list(&text("topology/thread_siblings_list").unwrap_or_default());
    let place = siblings.iter().position(|&sibling| sibling == cpu);
    let mut entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let node = entries
        .find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse::<u32>().ok());
    let khz = ["cpufreq/base_frequency", "cpufreq/cpuinfo_max_freq"];
    let mhz = khz.into_iter().find_map(number).map(|khz| khz / 1000);
    Cpu {
        cpu,
        node,
        socket: number("topology/physical_package_id"),
        core: number("topology/core_id"),
        thread: place.and_then(|place| u32::try_from(place).ok()),
        mhz: mhz.or_else(|| mhz_of(cpuinfo, cpu)),
        ..Cpu::default()
    }
}

/// `cpu MHz : 2600.002` of the CPU, x86 only.
fn mhz_of(cpuinfo: &str, cpu: u32) -> Option<u32> {
    let mut current = None;
    for line in cpuinfo.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.trim() {
            "processor" => current = value.trim().parse::<u32>().ok(),
            "cpu MHz" if current == Some(cpu) => {
                return value.trim().split('.').next()?.parse().ok();
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_share_a_core_and_have_their_own_number() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("online"), "0-1,5\n").unwrap();
        for (cpu, node, siblings) in [(0, 0, "0,5"), (1, 0, "1"), (5, 1, "0,5")] {
            let folder = root.path().join(format!("cpu{cpu}"));
            fs::create_dir_all(folder.join("topology")).unwrap();
            fs::create_dir_all(folder.join(format!("node{node}"))).unwrap();
            fs::write(folder.join("topology/physical_package_id"), "0\n").unwrap();
            fs::write(folder.join("topology/core_id"), "-1\n").unwrap();
            fs::write(folder.join("topology/thread_siblings_list"), siblings).unwrap();
        }
        fs::create_dir_all(root.path().join("cpu1/cpufreq")).unwrap();
        fs::write(root.path().join("cpu1/cpufreq/base_frequency"), "2400000\n").unwrap();
        let info = "processor\t: 0\ncpu MHz\t\t: 2600.5\n\nprocessor\t: 1\ncpu MHz\t\t: 1.0\n";
        let cpus = read(root.path(), info);
        let shown: Vec<_> =
            cpus.iter().map(|cpu| (cpu.cpu, cpu.node, cpu.thread, cpu.mhz)).collect();
        let wanted = [
            (0, Some(0), Some(0), Some(2600)),
            (1, Some(0), Some(0), Some(2400)),
            (5, Some(1), Some(1), None),
        ];
        assert_eq!(shown, wanted);
        assert_eq!((cpus[0].socket, cpus[0].core), (Some(0), None));
    }

    #[test]
    fn lists_have_ranges() {
        assert_eq!(list("0-2,7\n").into_iter().collect::<Vec<_>>(), [0, 1, 2, 7]);
        assert!(list("").is_empty() && list("x").is_empty());
        assert_eq!(list("0-4294967295").len(), 8193);
    }
}
