//! Where the time inside of interrupts and deferred work comes from: samples by function and module, as a tree of
//! calls, and along the receive path of the network.
//!
//! Samples are counted by their stacks. What stacks contain is joined at the end, because a dataset can yield the
//! tables in any order. Memory is bounded.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::data::{CallNode, InSamples, PathPart, SampledCrypto, SampledGroup};
use super::path::{self, Step};
use super::roles::{self, Role};

/// Most stacks, and most frames of all of them.
const STACKS_MAX: usize = 1 << 18;
const FRAMES_MAX: usize = 1 << 22;
/// Most different names of frames.
const NAMES_MAX: usize = 1 << 17;
/// Most recordings.
const RECORDINGS_MAX: usize = 4_096;
/// Deepest call that is shown, and the least share of all samples of a node.
const DEPTH_MAX: usize = 100;
const MIN_SHARE: f64 = 0.002;
/// Most groups that are listed.
const GROUPS_MAX: usize = 200;

/// What a sample hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    Interrupt,
    Deferred,
    Other,
}

/// A sample, as this part reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled<'a> {
    pub(super) recording: &'a str,
    pub(super) hit: Hit,
    pub(super) stack: Option<u64>,
    pub(super) module: Option<&'a str>,
    pub(super) function: Option<&'a str>,
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackFrame<'a> {
    pub(super) recording: &'a str,
    pub(super) stack: u64,
    pub(super) module: Option<&'a str>,
    pub(super) function: Option<&'a str>,
}

type Counts = [u64; 3];
type Name = (Option<Box<str>>, Option<Box<str>>);

#[derive(Debug, Default)]
pub(super) struct Stacks {
    recordings: Vec<Box<str>>,
    names: Vec<Name>,
    numbers: HashMap<Name, u32>,
    /// From the innermost frame outwards.
    frames: HashMap<(u32, u64), Vec<u32>>,
    frames_all: usize,
    by_stack: HashMap<(u32, u64), Counts>,
    by_function: HashMap<u32, Counts>,
    discarded: u64,
}

impl Stacks {
    fn recording(&mut self, name: &str) -> Option<u32> {
        // The latest is the usual one.
        let place = self.recordings.iter().rposition(|known| **known == *name).or_else(|| {
            (self.recordings.len() < RECORDINGS_MAX).then(|| {
                self.recordings.push(name.into());
                self.recordings.len() - 1
            })
        });
        place.map(|place| place as u32)
    }

    fn name(&mut self, module: Option<&str>, function: Option<&str>) -> Option<u32> {
        let name: Name =
            (module.map(|module| roles::short(module).into()), function.map(Into::into));
        if let Some(number) = self.numbers.get(&name) {
            return Some(*number);
        }
        if self.names.len() >= NAMES_MAX {
            self.discarded += 1;
            return None;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        Some(number)
    }

    pub(super) fn sample(&mut self, sample: Sampled<'_>) {
        let place = match sample.hit {
            Hit::Interrupt => 0,
            Hit::Deferred => 1,
            Hit::Other => 2,
        };
        let add =
            |counts: &mut Counts| counts.iter_mut().skip(place).take(1).for_each(|it| *it += 1);
        if let Some(name) = self.name(sample.module, sample.function) {
            add(self.by_function.entry(name).or_default());
        }
        let (Some(stack), Some(recording)) = (sample.stack, self.recording(sample.recording))
        else {
            return;
        };
        let key = (recording, stack);
        if self.by_stack.len() >= STACKS_MAX && !self.by_stack.contains_key(&key) {
            self.discarded += 1;
            return;
        }
        add(self.by_stack.entry(key).or_default());
    }

    /// Takes the frames of a stack one after the other, from the innermost outwards.
    pub(super) fn frame(&mut self, frame: StackFrame<'_>) {
        let Some(recording) = self.recording(frame.recording) else { return };
        let key = (recording, frame.stack);
        let is_full = self.frames_all >= FRAMES_MAX
            || self.frames.len() >= STACKS_MAX && !self.frames.contains_key(&key);
        if is_full {
            self.discarded += 1;
            return;
        }
        let Some(name) = self.name(frame.module, frame.function) else { return };
        self.frames_all += 1;
        self.frames.entry(key).or_default().push(name);
    }

    fn shown(&self, name: u32) -> String {
        match self.names.get(name as usize) {
            Some((Some(module), Some(function))) if roles::is_kernel_in_one(module) => {
                function.to_string()
            }
            Some((Some(module), Some(function))) => format!("{module}!{function}"),
            Some((Some(only), None) | (None, Some(only))) => only.to_string(),
            _ => "without a name".to_owned(),
        }
    }

    /// The result; `None` without samples, and how much did not fit.
    pub(super) fn finish(self) -> (Option<InSamples>, u64) {
        let discarded = self.discarded;
        let sum = |counts: &mut dyn Iterator<Item = &Counts>| {
            counts.fold([0_u64; 3], |sum, counts| {
                [0, 1, 2].map(|at: usize| {
                    sum.get(at).copied().unwrap_or(0) + counts.get(at).copied().unwrap_or(0)
                })
            })
        };
        let [interrupt, deferred, other] = sum(&mut self.by_function.values());
        if interrupt + deferred + other == 0 {
            return (None, discarded);
        }
        let has_functions = self.names.iter().any(|(_, function)| function.is_some());
        let result = InSamples {
            interrupt,
            deferred,
            groups: self.groups(),
            calls: self.calls(),
            receive: self.receive(),
            tracing_share: has_functions.then(|| self.tracing()),
            crypto: self.crypto(),
            all: interrupt + deferred + other,
        };
        (Some(result), discarded)
    }

    /// Samples in code that signs or encrypts, by module or family, the most first.
    fn crypto(&self) -> Vec<SampledCrypto> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, counts) in &self.by_function {
            let Some((module, function)) = self.names.get(*name as usize) else { continue };
            if let Some(family) = roles::crypto(module.as_deref(), function.as_deref()) {
                *sums.entry(family).or_default() += counts.iter().sum::<u64>();
            }
        }
        let sums = sums.into_iter().map(|(name, samples)| (name.to_owned(), samples));
        let mut sums: Vec<_> =
            sums.map(|(module, samples)| SampledCrypto { module, samples }).collect();
        sums.sort_by_key(|one| std::cmp::Reverse(one.samples));
        sums
    }

    fn groups(&self) -> Vec<SampledGroup> {
        let used = self.by_function.iter().filter(|(_, [a, b, _])| a + b > 0);
        let mut groups: Vec<_> = used
            .map(|(&name, &[interrupt, deferred, _])| {
                let (module, function) = self.names.get(name as usize).cloned().unwrap_or_default();
                SampledGroup {
                    module: module.map(String::from),
                    function: function.map(String::from),
                    interrupt,
                    deferred,
                }
            })
            .collect();
        groups.sort_by(|a, b| {
            let all = |one: &SampledGroup| one.interrupt + one.deferred;
            let name = |one: &SampledGroup| (one.module.clone(), one.function.clone());
            all(b).cmp(&all(a)).then_with(|| name(a).cmp(&name(b)))
        });
        groups.truncate(GROUPS_MAX);
        groups
    }

    /// Stacks of samples in interrupts and deferred work.
    fn used(&self) -> impl Iterator<Item = (&[u32], Counts)> {
        self.by_stack.iter().filter_map(|(key, counts)| {
            let frames = self.frames.get(key)?;
            (counts[0] + counts[1] > 0).then_some((frames.as_slice(), *counts))
        })
    }

    /// The tree of calls, outermost first.
    fn calls(&self) -> Vec<CallNode> {
        #[derive(Default)]
        struct Node {
            samples: u64,
            own: u64,
            children: BTreeMap<u32, Node>,
        }
        fn show(stacks: &Stacks, nodes: BTreeMap<u32, Node>, least: u64) -> Vec<CallNode> {
            let kept = nodes.into_iter().filter(|(_, node)| node.samples >= least);
            let mut shown: Vec<_> = kept
                .map(|(name, node)| CallNode {
                    name: stacks.shown(name),
                    samples: node.samples,
                    own_samples: node.own,
                    calls: show(stacks, node.children, least),
                })
                .collect();
            shown.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.name.cmp(&b.name)));
            shown
        }
        let mut roots: BTreeMap<u32, Node> = BTreeMap::new();
        let mut all = 0;
        for (frames, [interrupt, deferred, _]) in self.used() {
            let samples = interrupt + deferred;
            all += samples;
            // Frames of one module without functions are one node.
            let mut path: Vec<u32> = frames.iter().rev().copied().collect();
            path.dedup_by(|a, b| {
                a == b && self.names.get(*a as usize).is_some_and(|name| name.1.is_none())
            });
            path.truncate(DEPTH_MAX);
            let last = path.len();
            let mut level = &mut roots;
            for (depth, name) in path.into_iter().enumerate() {
                let node = level.entry(name).or_default();
                node.samples += samples;
                if depth + 1 == last {
                    node.own += samples;
                }
                level = &mut node.children;
            }
        }
        show(self, roots, ((all as f64 * MIN_SHARE) as u64).max(1))
    }

    /// The drivers and layers in the stacks of received packets, from the adapter to TCP.
    fn receive(&self) -> Vec<PathPart> {
        #[derive(Default)]
        struct Part {
            samples: u64,
            own: u64,
            /// Sum of the places in the path, weighted by samples.
            places: u64,
            roles: BTreeMap<Role, u64>,
        }
        let named = |name: &u32| {
            let (module, function) = self.names.get(*name as usize)?;
            Some((module.as_deref(), function.as_deref()))
        };
        let paths = || {
            self.used().filter(|(_, counts)| counts[1] > 0).map(|(frames, [_, samples, _])| {
                (frames.iter().rev().filter_map(named).collect::<Vec<_>>(), samples)
            })
        };
        let modules = path::Known::from_stacks(paths().map(|(path, _)| path));
        let mut parts: BTreeMap<&str, Part> = BTreeMap::new();
        let mut all = 0;
        for (path, samples) in paths() {
            let Some(steps) = path::steps(&path, &modules) else { continue };
            all += samples;
            let mut known: Vec<&str> = Vec::new();
            let last = path.len();
            for Step { place, name, role } in steps {
                let entry = parts.entry(name).or_default();
                if place + 1 == last {
                    entry.own += samples;
                }
                if known.contains(&name) {
                    continue;
                }
                entry.samples += samples;
                entry.places += place as u64 * samples;
                *entry.roles.entry(role).or_default() += samples;
                known.push(name);
            }
        }
        let mut found: Vec<_> = parts
            .into_iter()
            .map(|(name, part)| {
                let role = part.roles.into_iter().max_by_key(|(_, samples)| *samples);
                let place = part.places as f64 / part.samples.max(1) as f64;
                let role = role.map_or(Role::System, |(role, _)| role);
                let share = part.samples as f64 / f64::max(all as f64, 1.0);
                let own_share = part.own as f64 / f64::max(all as f64, 1.0);
                let samples = part.samples;
                let name = name.to_owned();
                (place, PathPart { name, role, samples, share, own_share })
            })
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.into_iter().map(|(_, part)| part).take(GROUPS_MAX).collect()
    }

    /// The share of all samples that the recording of the trace itself took.
    fn tracing(&self) -> f64 {
        let is_tracing = |name: &u32| {
            let function = self.names.get(*name as usize).and_then(|name| name.1.as_deref());
            function.and_then(roles::of_function).is_some_and(|(role, _)| role == Role::Tracing)
        };
        let (mut tracing, mut all) = (0_u64, 0_u64);
        for (key, counts) in &self.by_stack {
            let samples: u64 = counts.iter().sum();
            all += samples;
            if self.frames.get(key).is_some_and(|frames| frames.iter().any(is_tracing)) {
                tracing += samples;
            }
        }
        if all == 0 {
            for (name, counts) in &self.by_function {
                let samples: u64 = counts.iter().sum();
                all += samples;
                tracing += if is_tracing(name) { samples } else { 0 };
            }
        }
        tracing as f64 / all.max(1) as f64
    }
}
