//! Counters of Windows and their names on Linux.

use std::collections::HashSet;

/// A counter of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub instance: Option<String>,
    pub unit: &'static str,
    /// From Windows' unit.
    pub factor: f64,
}

/// A counter that comes from several columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    pub name: &'static str,
    pub unit: &'static str,
    how: How,
}

#[derive(Clone, Debug, PartialEq)]
enum How {
    /// The sum of columns.
    Sum(Vec<usize>),
    /// MHz of a column, per cent of them in another one.
    Frequency { mhz: usize, percent: Option<usize> },
}

impl Derived {
    /// Its value, if the columns have theirs.
    pub fn value(&self, of: &dyn Fn(usize) -> Option<f64>) -> Option<f64> {
        match &self.how {
            How::Sum(places) => places.iter().map(|place| of(*place)).sum(),
            How::Frequency { mhz, percent } => {
                let share = percent.map_or(Some(100.0), of)? / 100.0;
                Some(of(*mhz)? * 1e6 * share)
            }
        }
    }
}

/// What an object counts.
enum Instances {
    /// A processor: `0`, or `0,1` with its group; `_Total` is all of them.
    Processors,
    /// Something with a name; `_Total` is left out where the parts are there.
    Named,
    /// One for the machine.
    One,
}

/// Object and counter, and the name, the unit and the factor here.
type Known = (&'static str, &'static str, &'static str, &'static str, f64);

const BYTES_EACH_SECOND: &str = "bytes/s";
const EACH_SECOND: &str = "1/s";
const PERCENT: &str = "percent";

/// RDMA counts twice in Windows: for each adapter, and for each connection of SMB Direct, whose bytes are used where the
/// adapters are not in the log.
const ADAPTERS: &str = "RDMA Activity";
const CONNECTIONS: &str = "SMB Direct Connection";

const KNOWN: [Known; 40] = [
    ("Processor", "% Processor Time", "cpu_percent", PERCENT, 1.0),
    ("Processor", "% User Time", "cpu_user_percent", PERCENT, 1.0),
    ("Processor", "% Privileged Time", "cpu_system_percent", PERCENT, 1.0),
    ("Processor", "% DPC Time", "cpu_softirq_percent", PERCENT, 1.0),
    ("Processor", "% Interrupt Time", "cpu_irq_percent", PERCENT, 1.0),
    ("System", "Processor Queue Length", "run_queue", "tasks", 1.0),
    ("System", "Context Switches/sec", "context_switches_per_second", EACH_SECOND, 1.0),
    ("PhysicalDisk", "Disk Reads/sec", "disk_reads_per_second", EACH_SECOND, 1.0),
    ("PhysicalDisk", "Disk Writes/sec", "disk_writes_per_second", EACH_SECOND, 1.0),
    ("PhysicalDisk", "Disk Read Bytes/sec", "disk_read_bytes_per_second", BYTES_EACH_SECOND, 1.0),
    ("PhysicalDisk", "Disk Write Bytes/sec", "disk_write_bytes_per_second", BYTES_EACH_SECOND, 1.0),
    ("PhysicalDisk", "Avg. Disk sec/Read", "disk_read_ns", "ns", 1e9),
    ("PhysicalDisk", "Avg. Disk sec/Write", "disk_write_ns", "ns", 1e9),
    ("PhysicalDisk", "Current Disk Queue Length", "disk_queue", "requests", 1.0),
    ("Network Interface", "Bytes Received/sec", NETWORK_IN, BYTES_EACH_SECOND, 1.0),
    ("Network Interface", "Bytes Sent/sec", NETWORK_OUT, BYTES_EACH_SECOND, 1.0),
    ("Network Interface", "Packets Received/sec", NETWORK_PACKETS_IN, EACH_SECOND, 1.0),
    ("Network Interface", "Packets Sent/sec", NETWORK_PACKETS_OUT, EACH_SECOND, 1.0),
    ("Network Adapter", "Bytes Received/sec", NETWORK_IN, BYTES_EACH_SECOND, 1.0),
    ("Network Adapter", "Bytes Sent/sec", NETWORK_OUT, BYTES_EACH_SECOND, 1.0),
    ("Network Adapter", "Packets Received/sec", NETWORK_PACKETS_IN, EACH_SECOND, 1.0),
    ("Network Adapter", "Packets Sent/sec", NETWORK_PACKETS_OUT, EACH_SECOND, 1.0),
    ("TCPv4", "Connections Established", "tcp_connections", "connections", 1.0),
    ("TCPv4", "Segments Retransmitted/sec", "tcp_retransmissions_per_second", EACH_SECOND, 1.0),
    ("Memory", "Available Bytes", "memory_available_bytes", "bytes", 1.0),
    ("Memory", "Available KBytes", "memory_available_bytes", "bytes", 1024.0),
    ("Memory", "Available MBytes", "memory_available_bytes", "bytes", 1_048_576.0),
    ("Memory", "Cache Bytes", "memory_cached_bytes", "bytes", 1.0),
    ("Process", "% Processor Time", "process_cpu_percent", "percent of one processor", 1.0),
    ("Process", "% Privileged Time", "process_cpu_system_percent", "percent of one processor", 1.0),
    ("Process", "Working Set", "process_memory_bytes", "bytes", 1.0),
    (ADAPTERS, "RDMA Inbound Bytes/sec", RDMA_IN, BYTES_EACH_SECOND, 1.0),
    (ADAPTERS, "RDMA Outbound Bytes/sec", RDMA_OUT, BYTES_EACH_SECOND, 1.0),
    (ADAPTERS, "RDMA Inbound Frames/sec", "rdma_receive_packets_per_second", EACH_SECOND, 1.0),
    (ADAPTERS, "RDMA Outbound Frames/sec", "rdma_transmit_packets_per_second", EACH_SECOND, 1.0),
    (ADAPTERS, "RDMA Completion Queue Errors", "rdma_completion_errors", "errors", 1.0),
    (ADAPTERS, "RDMA Active Connections", "rdma_connections", "connections", 1.0),
    (ADAPTERS, "RDMA Failed Connection Attempts", "rdma_connections_failed", "connections", 1.0),
    // The local side reads from and writes to the memory of the other one.
    (CONNECTIONS, "Bytes RDMA Read/sec", RDMA_IN, BYTES_EACH_SECOND, 1.0),
    (CONNECTIONS, "Bytes RDMA Written/sec", RDMA_OUT, BYTES_EACH_SECOND, 1.0),
];

const NETWORK_IN: &str = "network_receive_bytes_per_second";
const NETWORK_OUT: &str = "network_transmit_bytes_per_second";
const NETWORK_PACKETS_IN: &str = "network_receive_packets_per_second";
const NETWORK_PACKETS_OUT: &str = "network_transmit_packets_per_second";
const RDMA_IN: &str = "rdma_receive_bytes_per_second";
const RDMA_OUT: &str = "rdma_transmit_bytes_per_second";
/// All instances together.
const TOTAL: &str = "_Total";
/// A name has at most N characters.
const NAME_MAX: usize = 120;

/// A path, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path<'a> {
    object: &'a str,
    instance: Option<&'a str>,
    counter: &'a str,
}

impl<'a> Path<'a> {
    /// Takes `\\HOST\Object(instance)\Counter` apart. Instances can have backslashes and parentheses.
    fn parse(path: &'a str) -> Option<Path<'a>> {
        let rest = match path.strip_prefix(r"\\") {
            Some(rest) => rest.split_once('\\')?.1,
            None => path.strip_prefix('\\')?,
        };
        let (whole, counter) = rest.rsplit_once('\\')?;
        let (object, instance) = match whole.split_once('(') {
            Some((object, instance)) => (object, Some(instance.strip_suffix(')')?)),
            None => (whole, None),
        };
        let is_named = !object.is_empty() && !counter.is_empty();
        is_named.then_some(Path { object, instance, counter })
    }

    /// The object, of those that say the same.
    fn kind(&self) -> &'a str {
        match self.object {
            "Processor Information" => "Processor",
            object => object,
        }
    }
}

/// The counters of a log by the paths of its columns, and what they give together. A column is `None` if it has no path,
/// or says what another one says.
pub fn columns(paths: &[&str]) -> (Vec<Option<Column>>, Vec<Derived>) {
    let parsed: Vec<_> = paths.iter().map(|path| Path::parse(path)).collect();
    let has = |object: &str| parsed.iter().flatten().any(|path| path.object == object);
    let has_adapters = has(ADAPTERS);
    let mut seen = HashSet::new();
    let mut column = |path: &Path<'_>| {
        let column = column(path, has_adapters)?;
        let key = (column.name.clone(), column.instance.clone());
        seen.insert(key).then_some(column)
    };
    let columns = parsed.iter().map(|path| column(path.as_ref()?)).collect();
    (columns, derived(&parsed))
}

fn column(path: &Path<'_>, has_adapters: bool) -> Option<Column> {
    let is_known = |known: &&Known| known.0 == path.kind() && known.1 == path.counter;
    let known = KNOWN.iter().find(is_known).filter(|known| {
        let is_second_count = known.0 == CONNECTIONS && has_adapters;
        !is_second_count
    });
    let state = path.counter.strip_prefix("% C").and_then(|rest| rest.strip_suffix(" Time"));
    if let (Some(state), "Processor") = (state, path.kind()) {
        return (path.instance == Some(TOTAL)).then(|| Column {
            name: "cpu_idle_state_percent".to_owned(),
            instance: Some(format!("C{state}")),
            unit: PERCENT,
            factor: 1.0,
        });
    }
    let Some((object, _, name, unit, factor)) = known else {
        let instance = path.instance.map(str::to_owned);
        return Some(Column {
            name: other_name(path),
            instance,
            unit: unit(path.counter),
            factor: 1.0,
        });
    };
    let instance = instance(&instances(object), path.instance)?;
    Some(Column { name: (*name).to_owned(), instance, unit, factor: *factor })
}

fn instances(object: &str) -> Instances {
    match object {
        "Processor" => Instances::Processors,
        "System" | "Memory" | "TCPv4" => Instances::One,
        _ => Instances::Named,
    }
}

/// The instance here; `None` for a sum that the parts give, too.
fn instance(kind: &Instances, instance: Option<&str>) -> Option<Option<String>> {
    match (kind, instance) {
        (Instances::One, _) => Some(None),
        (Instances::Processors, Some(TOTAL)) => Some(None),
        (Instances::Processors, Some(processor)) => {
            let (group, number) = processor.split_once(',').unwrap_or(("0", processor));
            let (group, number) = (group.parse::<u32>().ok()?, number.parse::<u32>().ok()?);
            // A group has at most 64 processors.
            let number = group.checked_mul(64)?.checked_add(number)?;
            Some(Some(format!("cpu{number}")))
        }
        (Instances::Processors, None) => None,
        (Instances::Named, Some(TOTAL)) => None,
        (Instances::Named, name) => Some(name.map(str::to_owned)),
    }
}

/// What several columns give together.
fn derived(paths: &[Option<Path<'_>>]) -> Vec<Derived> {
    let find = |counter: &str| {
        let is_it = |path: &&Path<'_>| {
            path.kind() == "Processor" && path.instance == Some(TOTAL) && path.counter == counter
        };
        paths.iter().position(|path| path.as_ref().as_ref().is_some_and(is_it))
    };
    let mut derived = Vec::new();
    let deep: Vec<_> = ["% C2 Time", "% C3 Time"].into_iter().filter_map(find).collect();
    if !deep.is_empty() {
        let name = "cpu_idle_deep_percent";
        derived.push(Derived { name, unit: PERCENT, how: How::Sum(deep) });
    }
    let frequency = match (find("Actual Frequency"), find("Processor Frequency")) {
        (Some(mhz), _) => Some(How::Frequency { mhz, percent: None }),
        (None, Some(mhz)) => Some(How::Frequency { mhz, percent: find("% Processor Performance") }),
        (None, None) => None,
    };
    if let Some(how) = frequency {
        derived.push(Derived { name: "cpu_frequency_hertz", unit: "Hz", how });
    }
    derived
}

/// The name of a counter that Linux does not have: `windows_smb_server_shares_avg_sec_request`.
fn other_name(path: &Path<'_>) -> String {
    let counter = path.counter.replace("/sec", " per second").replace('%', "percent ");
    let mut name = "windows".to_owned();
    for word in format!("{} {counter}", path.object).split(|c: char| !c.is_ascii_alphanumeric()) {
        if !word.is_empty() && name.len() + word.len() < NAME_MAX {
            name.push('_');
            name.push_str(&word.to_ascii_lowercase());
        }
    }
    name
}

/// The unit of such a counter, as far as its name says it.
fn unit(counter: &str) -> &'static str {
    let is_rate = counter.ends_with("/sec");
    match counter {
        _ if counter.starts_with('%') => PERCENT,
        _ if is_rate && counter.contains("Bytes") => BYTES_EACH_SECOND,
        _ if is_rate => EACH_SECOND,
        _ if counter.contains(" sec/") => "s",
        _ if counter.ends_with("Bytes") => "bytes",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Column {
        columns(&[path]).0.remove(0).unwrap()
    }

    #[test]
    fn paths_are_taken_apart_whatever_the_instance_is() {
        let parse = |path| Path::parse(path).map(|it| (it.object, it.instance, it.counter));
        let total = Some(("Processor", Some("_Total"), "% DPC Time"));
        assert_eq!(parse(r"\\FS1\Processor(_Total)\% DPC Time"), total);
        assert_eq!(parse(r"\Processor(_Total)\% DPC Time"), total);
        let share = parse(r"\\FS1\SMB Server Shares(\\*\data (old))\Avg. sec/Request");
        assert_eq!(share, Some(("SMB Server Shares", Some(r"\\*\data (old)"), "Avg. sec/Request")));
        assert_eq!(parse(r"\\FS1\Memory\Available MBytes").unwrap().1, None);
        for none in ["", "Time", r"\\FS1", r"\\FS1\Memory", r"\\FS1\Memory(x\y", r"\\FS1\\"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn known_counters_have_the_names_of_linux() {
        let column = of(r"\\FS1\Memory\Available MBytes");
        assert_eq!((&*column.name, column.factor), ("memory_available_bytes", 1_048_576.0));
        let column = of(r"\\FS1\Processor Information(1,3)\% DPC Time");
        assert_eq!(
            (&*column.name, column.instance.as_deref()),
            ("cpu_softirq_percent", Some("cpu67"))
        );
        assert_eq!(of(r"\\FS1\Processor(_Total)\% Processor Time").instance, None);
        let column = of(r"\\FS1\RDMA Activity(Mellanox [2])\RDMA Inbound Bytes/sec");
        assert_eq!((&*column.name, column.instance.as_deref()), (RDMA_IN, Some("Mellanox [2]")));
        let column = of(r"\\FS1\SMB Server Shares(\\*\home)\Avg. sec/Request");
        assert_eq!(
            (&*column.name, column.unit),
            ("windows_smb_server_shares_avg_sec_request", "s")
        );
        let column = of(r"\\FS1\SMB Server\Read Bytes/sec");
        assert_eq!(
            (&*column.name, column.unit),
            ("windows_smb_server_read_bytes_per_second", "bytes/s")
        );
    }

    #[test]
    fn what_is_counted_twice_is_one_counter() {
        let paths = [
            r"\\A\Processor(_Total)\% Processor Time",
            r"\\A\Processor Information(_Total)\% Processor Time",
            r"\\A\RDMA Activity(x)\RDMA Inbound Bytes/sec",
            r"\\A\RDMA Activity(_Total)\RDMA Inbound Bytes/sec",
            r"\\A\SMB Direct Connection(10.0.0.1:5445 - 10.0.0.2:445)\Bytes RDMA Read/sec",
            r"\\A\Processor Information(0,_Total)\% Processor Time",
        ];
        let (columns, _) = columns(&paths);
        let names: Vec<_> =
            columns.iter().map(|it| it.as_ref().map(|it| it.name.as_str())).collect();
        let direct = Some("windows_smb_direct_connection_bytes_rdma_read_per_second");
        assert_eq!(names, [Some("cpu_percent"), None, Some(RDMA_IN), None, direct, None]);
        let (columns, _) = super::columns(&paths[4..5]);
        assert_eq!(columns[0].as_ref().unwrap().name, RDMA_IN);
    }

    #[test]
    fn deep_idle_states_and_the_frequency_come_from_several_columns() {
        let paths = [
            r"\\A\Processor(_Total)\% C1 Time",
            r"\\A\Processor(_Total)\% C2 Time",
            r"\\A\Processor(_Total)\% C3 Time",
            r"\\A\Processor Information(_Total)\Processor Frequency",
            r"\\A\Processor Information(_Total)\% Processor Performance",
        ];
        let (columns, derived) = columns(&paths);
        assert_eq!(columns[2].as_ref().unwrap().instance.as_deref(), Some("C3"));
        let values = [10.0, 20.0, 30.0, 2_600.0, 50.0];
        let of = |place: usize| values.get(place).copied();
        let found: Vec<_> = derived.iter().map(|it| (it.name, it.value(&of))).collect();
        let expected =
            [("cpu_idle_deep_percent", Some(50.0)), ("cpu_frequency_hertz", Some(1.3e9))];
        assert_eq!(found, expected);
        assert_eq!(derived[1].value(&|place| of(place).filter(|_| place != 4)), None);
    }
}
