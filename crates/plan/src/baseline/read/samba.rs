//! smb.conf, `testparm -s` and `net conf list` (smb.conf(5); `lib/util/params.c` and `lib/param/loadparm.c` of Samba).
//!
//! Names are compared without case and space, synonyms get their canonical name, values the spelling of `testparm`. An
//! `include` is read in its place if its file is part of the input. Messages of testparm are not settings.

pub mod parameters;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::setting::{Place, Value};
use super::sink::Sink;
use super::{Format, Item};
use crate::input::lines::lines;
use crate::input::text::decode;

/// Files within each other; Samba allows 100, real ones have two.
const DEPTH_MAX: usize = 8;
/// Files and bytes that all files of an input include.
const INCLUDES_MAX: usize = 1_000;
const INCLUDED_BYTES_MAX: usize = 64 << 20;
/// Files with the same last part of their names that an `include` can mean.
const SAME_NAME_MAX: usize = 16;
/// Bytes of one value over several lines.
const CONTINUED_MAX: usize = 64 << 10;
/// Settings of all shares that `copy` can refer to.
const COPIED_MAX: usize = 20_000;

/// The comment that testparm begins with.
const PRINTED: &str = "# Global parameters";

/// Whether a text is smb.conf: a section `[global]`, or mostly known parameters.
pub(super) fn is_smb_conf(text: &str) -> bool {
    let mut known = 0;
    let mut others = 0;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if is_global(name) {
                return true;
            }
            continue;
        }
        match line.split_once('=') {
            Some((name, _)) if parameters::find(name).is_some() => known += 1,
            _ => others += 1,
        }
    }
    known > 0 && known >= others
}

fn is_global(section: &str) -> bool {
    let section = section.trim();
    section.eq_ignore_ascii_case("global") || section.eq_ignore_ascii_case("globals")
}

/// Which file an `include` names, and which files others include: those are not read on their own.
#[derive(Debug, Default)]
pub(super) struct Includes {
    /// Positions of files by the last part of their names.
    by_name: HashMap<String, Vec<usize>>,
    included: BTreeSet<usize>,
}

impl Includes {
    /// Finds the includes of an input. The first of files that include each other is read on its own.
    pub(super) fn find(items: &[Item<'_>]) -> Self {
        let mut includes = Self::default();
        for (position, item) in items.iter().enumerate() {
            if matches!(item.format, Format::SmbConf | Format::Unrecognised) {
                let same = includes.by_name.entry(last_part(&item.name).to_owned()).or_default();
                // Enough to choose from.
                if same.len() < SAME_NAME_MAX {
                    same.push(position);
                }
            }
        }
        let edges: BTreeMap<usize, Vec<usize>> = items
            .iter()
            .enumerate()
            .filter(|(_, item)| item.format == Format::SmbConf)
            .map(|(position, item)| (position, includes.targets(position, item, items)))
            .collect();
        let pointed: BTreeSet<usize> = edges.values().flatten().copied().collect();
        let mut seen = BTreeSet::new();
        let roots = edges.keys().filter(|position| !pointed.contains(position));
        for root in roots.chain(edges.keys()) {
            if !seen.insert(*root) {
                continue;
            }
            let mut open = vec![*root];
            while let Some(position) = open.pop() {
                for target in edges.get(&position).into_iter().flatten() {
                    if seen.insert(*target) {
                        includes.included.insert(*target);
                        open.push(*target);
                    }
                }
            }
        }
        includes
    }

    pub(super) fn has(&self, position: usize) -> bool {
        self.included.contains(&position)
    }

    fn targets(&self, position: usize, item: &Item<'_>, items: &[Item<'_>]) -> Vec<usize> {
        let text = decode(&item.bytes).text;
        let paths = lines(&text).filter_map(|(_, line)| {
            let (name, path) = line.split_once('=')?;
            name.trim().eq_ignore_ascii_case("include").then(|| path.trim().to_owned())
        });
        let paths: BTreeSet<String> = paths.take(INCLUDES_MAX).collect();
        paths.iter().filter_map(|path| self.resolve(path, position, items)).collect()
    }

    /// The file of the input that an `include` names: the one that has most of the path's end.
    fn resolve(&self, path: &str, from: usize, items: &[Item<'_>]) -> Option<usize> {
        if path.contains('%') || path.is_empty() {
            return None;
        }
        let common = |position: &usize| {
            let name = items.get(*position).map_or("", |item| item.name.as_str());
            let pairs = name.rsplit('/').zip(path.rsplit('/'));
            pairs.take_while(|(one, other)| one == other).count()
        };
        let candidates = self.by_name.get(last_part(path))?.iter();
        let found = candidates.copied().filter(|position| *position != from);
        // Of equal ones the first.
        found.rev().max_by_key(common)
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(super) fn read(position: usize, items: &[Item<'_>], includes: &Includes, sink: &mut Sink<'_>) {
    let mut reading = Reading {
        items,
        includes,
        open: Vec::new(),
        share: None,
        is_printed: false,
        shares: BTreeMap::new(),
        copied: 0,
        copies: 0,
    };
    reading.file(position, sink);
}

/// Parameters and values of one share, for `copy`.
type Share = BTreeMap<String, String>;

struct Reading<'a, 'b> {
    items: &'a [Item<'b>],
    includes: &'a Includes,
    /// Files that are being read, the included ones last.
    open: Vec<usize>,
    /// The section: a share, or none for `[global]` and what is before the first section.
    share: Option<String>,
    /// Whether testparm printed the file.
    is_printed: bool,
    shares: BTreeMap<String, Share>,
    /// Settings that are remembered for `copy`, and that were copied.
    copied: usize,
    copies: usize,
}

impl Reading<'_, '_> {
    fn file(&mut self, position: usize, sink: &mut Sink<'_>) {
        let Some(item) = self.items.get(position) else { return };
        self.open.push(position);
        let text = decode(&item.bytes).text;
        let mut lines = lines(&text);
        while let Some((number, line)) = lines.next() {
            let mut whole = line.trim().to_owned();
            self.is_printed |= whole == PRINTED;
            if whole.is_empty() || whole.starts_with(['#', ';']) {
                continue;
            }
            while whole.ends_with('\\') && whole.len() < CONTINUED_MAX {
                whole.pop();
                let Some((_, next)) = lines.next() else { break };
                whole.push_str(next.trim());
            }
            self.line(&item.name, number, whole.trim(), sink);
        }
        self.open.pop();
    }

    fn line(&mut self, file: &str, number: u64, line: &str, sink: &mut Sink<'_>) {
        if let Some(rest) = line.strip_prefix('[') {
            match rest.split_once(']') {
                Some((name, _)) if is_global(name) => self.share = None,
                Some((name, _)) if !name.trim().is_empty() => {
                    let name: Vec<&str> = name.split_whitespace().collect();
                    self.share = Some(name.join(" "));
                }
                _ => sink.unknown_in(file, number, line, "a section without a name"),
            }
            return;
        }
        let Some((name, value)) = line.split_once('=') else {
            return sink.unknown_in(file, number, line, "a message, or a line without `=`");
        };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return sink.unknown_in(file, number, line, "a value without a name");
        }
        // `vfs module:option`: parameters of modules have no table.
        if name.contains(':') {
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            return self.set(file, number, &name, value.to_owned(), sink);
        }
        let Some((parameter, is_inverse)) = parameters::find(name) else {
            return sink.unknown_in(
                file,
                number,
                line,
                "Samba 4.17 and 4.22 do not know this parameter",
            );
        };
        match parameter.name {
            "include" => return self.include(file, number, value, line, sink),
            // testparm prints what `copy` made, and the line itself.
            "copy" if !self.is_printed => self.copy(file, number, value, sink),
            _ => {}
        }
        if self.share.is_some() && !parameter.is_of_share {
            let why = "a global parameter has no effect in a share";
            return sink.unknown_in(file, number, line, why);
        }
        self.set(file, number, parameter.name, parameter.canonical(value, is_inverse), sink);
    }

    fn set(
        &mut self,
        file: &str,
        number: u64,
        parameter: &str,
        value: String,
        sink: &mut Sink<'_>,
    ) {
        let place = Place::Samba { share: self.share.clone(), parameter: parameter.to_owned() };
        if let Some(share) = &self.share
            && self.copied < COPIED_MAX
        {
            self.copied += 1;
            let share = self.shares.entry(share.to_lowercase()).or_default();
            share.insert(parameter.to_owned(), value.clone());
        }
        sink.setting_in(file, number, place, Value::Text(value));
    }

    fn include(&mut self, file: &str, number: u64, path: &str, line: &str, sink: &mut Sink<'_>) {
        let from = self.open.last().copied().unwrap_or_default();
        let Some(target) = self.includes.resolve(path, from, self.items) else {
            let why = if path.contains('%') {
                "a file whose name depends on the client or the user"
            } else if path.eq_ignore_ascii_case("registry") {
                "the configuration in Samba's registry: give the output of `net conf list`"
            } else {
                "a file that is not part of the input: give it as well"
            };
            return sink.unknown_in(file, number, line, why);
        };
        if self.open.contains(&target) {
            return sink.unknown_in(file, number, line, "a file that includes this one");
        }
        let (includes, bytes) =
            sink.included(self.items.get(target).map_or(0, |item| item.bytes.len()));
        if self.open.len() >= DEPTH_MAX || includes > INCLUDES_MAX || bytes > INCLUDED_BYTES_MAX {
            return sink.damage(
                number,
                format!(
                    "`{}` is not read: too many files include each other",
                    crate::input::text::clean(path)
                ),
            );
        }
        let share = self.share.clone();
        self.file(target, sink);
        // Sections of an included file end with it.
        self.share = share;
    }

    /// The settings of another share, as if they were written here.
    fn copy(&mut self, file: &str, number: u64, name: &str, sink: &mut Sink<'_>) {
        let Some(other) = self.shares.get(&name.to_lowercase()).filter(|_| self.share.is_some())
        else {
            return sink.unknown_in(file, number, name, "copies a share that is not known here");
        };
        self.copies += other.len();
        if self.copies > COPIED_MAX {
            let message = format!(
                "more than {COPIED_MAX} settings are copied from other shares: the rest is left out"
            );
            return sink.damage(number, message);
        }
        let settings: Vec<(String, String)> =
            other.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, value) in settings {
            if name != "copy" {
                self.set(file, number, &name, value, sink);
            }
        }
    }
}
