//! A recording while a test runs, and checks of its rows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow::array::{Array as _, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use smbscope_capture::{Options, Part, live};
use smbscope_samba::check::facts;
use smbscope_samba::find::Choice;
use smbscope_samba::loader::LoadOptions;
use smbscope_samba::recording::{Progress, Recording};
use smbscope_tables::slice::{Kind, Slice};

use smbscope_testing::run::operations;
use smbscope_testing::samba::Samba;

/// One recording at a time: several probes record each other's smbd and cost twice.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this machine does not permit recording.
pub fn blocked() -> bool {
    facts().iter().any(|fact| fact.blocks)
}

pub struct Recorded {
    pub parts: Vec<Part>,
    pub progress: Progress,
}

/// Records the lab until it is stopped; `None`, with a message, if the kernel does not permit it.
pub struct Recorder {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Recorded>,
}

impl Recorder {
    pub fn begin(lab: &Samba) -> Option<Recorder> {
        Recorder::begin_with(lab, LoadOptions::default(), None)
    }

    /// Also captures the loopback interface.
    pub fn begin_joined(lab: &Samba) -> Option<Recorder> {
        let interface = live::Options {
            interface: "lo".to_owned(),
            ports: Vec::new(),
            ..live::Options::default()
        };
        Recorder::begin_with(lab, LoadOptions::default(), Some(interface))
    }

    pub fn begin_with(
        lab: &Samba,
        load: LoadOptions,
        interface: Option<live::Options>,
    ) -> Option<Recorder> {
        let choice = Choice { ports: vec![lab.port()], ..Choice::default() };
        Recorder::from_choice(choice, load, interface)
    }

    /// Records the chosen processes.
    pub fn from_choice(
        choice: Choice,
        load: LoadOptions,
        interface: Option<live::Options>,
    ) -> Option<Recorder> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, ready) = (stop.clone(), std::sync::mpsc::channel());
        let (begun, ready) = ready;
        let thread = std::thread::spawn(move || {
            let decode = Options::default();
            let mut recording = match Recording::begin("probe", &choice, load, &decode, interface) {
                Ok(recording) => recording,
                Err(error) => {
                    begun.send(Some(error)).unwrap();
                    return Recorded { parts: Vec::new(), progress: Progress::default() };
                }
            };
            begun.send(None).unwrap();
            let mut parts = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let (some, idle) = recording.poll().unwrap();
                parts.extend(some.into_iter().flatten());
                if idle {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            let (last, progress) = recording.end().unwrap();
            parts.extend(last);
            Recorded { parts, progress }
        });
        match ready.recv().unwrap() {
            None => Some(Recorder { stop, thread }),
            // If the machine can record, a failure is a defect. Only the attempt shows whether
            // functions of the kernel can be probed.
            Some(error) if blocked() || !load.tracepoints => {
                smbscope_testing::skip!("{error}");
                None
            }
            Some(error) => panic!("{error}"),
        }
    }

    /// Ends it once the connections are closed.
    pub fn end(self) -> Recorded {
        std::thread::sleep(Duration::from_millis(500));
        self.stop.store(true, Ordering::Relaxed);
        let recorded = self.thread.join().unwrap();
        assert_eq!(recorded.progress.counted, Default::default());
        assert_eq!(recorded.progress.losses.given_up, 0);
        recorded
    }
}

/// A column as integers, by the operation's number.
pub fn column(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    let values = cast(&batch[name], &DataType::Int64).unwrap();
    values.as_primitive::<Int64Type>().iter().collect()
}

pub fn text(batch: &RecordBatch, name: &str) -> Vec<String> {
    let values = cast(&batch[name], &DataType::Utf8).unwrap();
    let values = values.as_string::<i32>();
    (0..values.len()).map(|row| values.value(row).to_owned()).collect()
}

/// The values of an operation that tests use.
#[derive(Clone, Debug)]
pub struct Row {
    pub command: String,
    pub turnaround: Option<i64>,
    pub transferred: Option<i64>,
    pub signed: bool,
    pub encrypted: bool,
    /// A member of a compound: what the members have in common is in the row of the first.
    pub in_compound: bool,
    number: i64,
    slices: [Option<i64>; Kind::PARTS],
}

impl Row {
    /// A slice, ns; `None` if it has no slice of the kind.
    pub fn slice(&self, kind: Kind) -> Option<i64> {
        self.slices[kind as usize]
    }

    /// Likewise, 0 if there is none.
    pub fn ns(&self, kind: Kind) -> i64 {
        self.slice(kind).unwrap_or(0)
    }

    pub fn sum(&self) -> i64 {
        self.slices.iter().flatten().sum()
    }

    pub fn has_slices(&self) -> bool {
        self.slices.iter().any(Option::is_some)
    }

    /// The row on one line, for the message of a failed test.
    pub fn told(&self) -> String {
        let named = Kind::ALL.iter().zip(&self.slices);
        let parts: Vec<_> = named
            .filter_map(|(kind, slice)| Some(format!("{} {}", kind.name(), (*slice)?)))
            .collect();
        format!("{} of {:?} ns: {}", self.command, self.turnaround, parts.join(", "))
    }
}

impl Recorded {
    pub fn rows(&self) -> Vec<Row> {
        rows(&self.parts)
    }
}

pub fn rows(parts: &[Part]) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in operations(parts.to_vec()) {
        let commands = text(&batch, "command");
        let [numbers, turnarounds, transferred, compounds, signed, encrypted] =
            ["operation", "turnaround_ns", "transferred_bytes", "compound", "signed", "encrypted"]
                .map(|name| column(&batch, name));
        let slices: Vec<_> = Kind::ALL[..Kind::PARTS]
            .iter()
            .map(|kind| column(&batch, &format!("{}_ns", kind.name())))
            .collect();
        rows.extend(commands.into_iter().enumerate().map(|(row, command)| Row {
            command,
            turnaround: turnarounds[row],
            transferred: transferred[row],
            signed: signed[row] == Some(1),
            encrypted: encrypted[row] == Some(1),
            in_compound: compounds[row].is_some(),
            number: numbers[row].unwrap(),
            slices: std::array::from_fn(|kind| slices[kind][row]),
        }));
    }
    rows
}

/// Checks that every operation has slices, that they sum up to its turnaround (a compound's is in the
/// row of its first member), and that the table of slices agrees. Returns the number of rows.
pub fn slices_add_up(parts: &[Part]) -> usize {
    let mut of_table: HashMap<i64, i64> = HashMap::new();
    for part in parts {
        if let Part::Slices(batch) = part {
            for row in Slice::from_batch(batch) {
                *of_table.entry(row.operation as i64).or_default() += row.duration_ns;
            }
        }
    }
    let mut without = Vec::new();
    let mut off = Vec::new();
    let rows = rows(parts);
    for row in &rows {
        assert_eq!(of_table.get(&row.number).copied().unwrap_or(0), row.sum());
        if !row.has_slices() {
            without.push(row.command.clone());
        } else if let (Some(turnaround), false) = (row.turnaround, row.in_compound)
            && (turnaround - row.sum()).abs() > 1_000
        {
            off.push(row.told());
        }
    }
    assert!(without.is_empty(), "without slices: {without:?}");
    assert!(off.is_empty(), "{} of {}: {:?}", off.len(), rows.len(), &off[..off.len().min(5)]);
    rows.len()
}
