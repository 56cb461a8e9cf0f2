//! What samples hit, by process and by symbol: what `perf report` shows. Samples need no CPU for that.

use std::collections::HashMap;

use serde::Serialize;
use smbscope_tables::tables::Image;

use super::data::Section;
use super::roles::short;

/// Most processes, most symbols, and most of each that are listed.
const PROCESSES_MAX: usize = 1 << 16;
const SYMBOLS_MAX: usize = 1 << 18;
const LISTED_MAX: usize = 200;
/// Most threads of a process that are counted.
const THREADS_MAX: usize = 1 << 12;

/// What samples hit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskSamples {
    pub samples: u64,
    /// Whether any sample says on which CPU it was taken.
    pub has_cpus: bool,
    /// The most samples first.
    pub processes: Vec<SampledProcess>,
    pub symbols: Vec<SampledSymbol>,
}

/// Samples of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SampledProcess {
    /// Null if the trace does not say it.
    pub process: Option<u64>,
    /// Name of its first thread, or of its program.
    pub name: Option<String>,
    /// Threads that samples hit.
    pub threads: u64,
    pub samples: u64,
    /// Part of all samples.
    pub share: f64,
    /// Samples in the kernel, interrupts and deferred work included, and in the program.
    pub kernel: u64,
    pub user: u64,
    /// Time that the samples represent; null if the trace does not say it.
    pub time_ns: Option<i64>,
}

/// Samples of one function, or of one module without names of functions, in threads of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SampledSymbol {
    /// Name of the threads.
    pub task: Option<String>,
    pub module: Option<String>,
    pub function: Option<String>,
    pub samples: u64,
    /// Part of all samples.
    pub share: f64,
}

/// A sample, as this part reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled<'a> {
    pub(super) recording: &'a str,
    pub(super) has_cpu: bool,
    pub(super) process: Option<u64>,
    pub(super) thread: Option<u64>,
    pub(super) task: Option<&'a str>,
    pub(super) module: Option<&'a str>,
    pub(super) function: Option<&'a str>,
    pub(super) section: Section,
    pub(super) weight_ns: Option<i64>,
}

/// The recording and the process.
type ProcessKey = (u32, Option<u64>);
/// Task, module and function.
type SymbolKey = [Option<u32>; 3];

/// Names by number.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
}

impl Names {
    /// The number of a name; `None` if there are too many.
    fn number(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number =
            u32::try_from(self.names.len()).ok().filter(|_| self.names.len() < SYMBOLS_MAX)?;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        Some(number)
    }

    fn name(&self, number: Option<u32>) -> Option<String> {
        self.names.get(number? as usize).map(|name| name.to_string())
    }
}

#[derive(Debug, Default)]
struct Process {
    row: SampledProcess,
    threads: std::collections::HashSet<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    samples: u64,
    has_cpus: bool,
    processes: HashMap<ProcessKey, Process>,
    symbols: HashMap<SymbolKey, u64>,
    names: Names,
    /// Programs by their process.
    programs: HashMap<ProcessKey, Box<str>>,
    discarded: u64,
}

impl Tasks {
    /// Takes rows of the table `images`: the program of a process is the first image with that extension.
    pub(super) fn images(&mut self, rows: &[Image]) {
        for row in rows.iter().filter(|row| row.process != 0) {
            let name = short(&row.name);
            let is_program =
                name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("exe"));
            if is_program
                && self.programs.len() < PROCESSES_MAX
                && let Some(recording) = self.names.number(&row.recording)
            {
                let key = (recording, Some(row.process));
                self.programs.entry(key).or_insert_with(|| name.into());
            }
        }
    }

    pub(super) fn sample(&mut self, one: &Sampled<'_>) {
        self.samples += 1;
        self.has_cpus |= one.has_cpu;
        self.process(one);
        let task = one.task.or((one.thread == Some(0)).then_some("idle"));
        let key = [task, one.module.map(short), one.function];
        let key = key.map(|name| name.and_then(|name| self.names.number(name)));
        if let Some(count) = self.symbols.get_mut(&key) {
            *count += 1;
        } else if self.symbols.len() < SYMBOLS_MAX {
            self.symbols.insert(key, 1);
        } else {
            self.discarded += 1;
        }
    }

    fn process(&mut self, one: &Sampled<'_>) {
        let Some(recording) = self.names.number(one.recording) else { return };
        let key = (recording, one.process);
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&key) {
            self.discarded += 1;
            return;
        }
        let Process { row, threads } = self.processes.entry(key).or_default();
        row.process = one.process;
        row.samples += 1;
        match one.section {
            Section::Kernel | Section::Interrupt | Section::Deferred => row.kernel += 1,
            Section::User => row.user += 1,
            Section::Idle | Section::Unknown => {}
        }
        // The first thread of a process has its number.
        if row.name.is_none() || one.thread == one.process {
            row.name = one.task.map(str::to_owned).or(row.name.take());
        }
        row.time_ns = match (row.time_ns, one.weight_ns) {
            (sum, Some(weight)) if row.samples == 1 || sum.is_some() => {
                Some(sum.unwrap_or(0).saturating_add(weight))
            }
            _ => None,
        };
        if threads.len() < THREADS_MAX {
            threads.extend(one.thread);
        }
    }

    /// The result; `None` without samples, and how much did not fit.
    pub(super) fn finish(self) -> (Option<TaskSamples>, u64) {
        let Tasks { samples, has_cpus, processes, symbols, names, mut programs, discarded } = self;
        let share = |count: u64| count as f64 / samples.max(1) as f64;
        let mut processes: Vec<_> = processes
            .into_iter()
            .map(|(key, Process { row, threads })| {
                let idle = || (key.1 == Some(0)).then(|| "idle".to_owned());
                let program = programs.remove(&key).map(String::from);
                SampledProcess {
                    threads: threads.len() as u64,
                    share: share(row.samples),
                    name: row.name.or(program).or_else(idle),
                    ..row
                }
            })
            .collect();
        processes.sort_by(|a, b| (b.samples, &a.process).cmp(&(a.samples, &b.process)));
        processes.truncate(LISTED_MAX);
        let mut symbols: Vec<_> = symbols
            .into_iter()
            .map(|([task, module, function], samples)| SampledSymbol {
                task: names.name(task),
                module: names.name(module),
                function: names.name(function),
                samples,
                share: share(samples),
            })
            .collect();
        let name =
            |one: &SampledSymbol| (one.task.clone(), one.module.clone(), one.function.clone());
        symbols.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| name(a).cmp(&name(b))));
        symbols.truncate(LISTED_MAX);
        let found = TaskSamples { samples, has_cpus, processes, symbols };
        ((samples > 0).then_some(found), discarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_by_process_and_symbol() {
        let mut tasks = Tasks::default();
        let sample = |thread, task, section, weight_ns| Sampled {
            recording: "a",
            has_cpu: false,
            process: Some(7),
            thread: Some(thread),
            task: Some(task),
            module: Some("/usr/lib/libc.so.6"),
            function: None,
            section,
            weight_ns,
        };
        tasks.sample(&sample(8, "worker", Section::User, Some(10)));
        tasks.sample(&sample(7, "smbd", Section::Kernel, Some(20)));
        let idle = Sampled {
            process: Some(0),
            thread: Some(0),
            task: None,
            ..sample(0, "", Section::Idle, None)
        };
        tasks.sample(&idle);
        let image = Image {
            process: 9,
            name: r"\x\System.EXE".to_owned(),
            recording: "a".to_owned(),
            ..Image::default()
        };
        tasks.images(&[image]);
        tasks.sample(&Sampled { process: Some(9), thread: Some(9), task: None, ..idle });
        let found = tasks.finish().0.unwrap();
        let shown: Vec<_> = found
            .processes
            .iter()
            .map(|one| {
                (one.name.as_deref(), one.threads, one.samples, one.kernel, one.user, one.time_ns)
            })
            .collect();
        let expected = [
            (Some("smbd"), 2, 2, 1, 1, Some(30)),
            (Some("idle"), 1, 1, 0, 0, None),
            (Some("System.EXE"), 1, 1, 0, 0, None),
        ];
        assert_eq!(shown, expected);
        assert_eq!((found.samples, found.has_cpus, found.symbols.len()), (4, false, 4));
        assert_eq!(found.symbols[0].share, 0.25);
    }
}
