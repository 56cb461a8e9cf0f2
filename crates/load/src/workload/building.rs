//! What the readers of scenarios and of requests share: the parts collected so far, defaults, and values that are words.

use std::ops::Range;

use smbscope_wire::status::Status;

use super::check::Tracker;
use super::error::{Source, WorkloadError, nearest};
use super::model::{PathId, Pick};
use super::table::{At, Table, quoted};
use super::template::{PickId, Template};
use super::words::Words;

pub(super) type Read<T> = Result<T, WorkloadError>;

/// Defaults of transfers.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    pub block_bytes: u32,
    pub depth: u16,
}

/// A block's size; SMB2 allows up to 8 MiB (MaxReadSize of current servers).
pub(super) fn block(value: Option<At<u64>>, source: Source<'_>, default: u32) -> Read<u32> {
    match value {
        None => Ok(default),
        Some(At { value: block @ 1..=8_388_608, .. }) => Ok(block as u32),
        Some(At { span, .. }) => Err(source.error(span, "a block has from 1 byte to 8 MiB")),
    }
}

/// The collected parts of a scenario.
pub(super) struct Building<'a> {
    pub picks: &'a [Pick],
    pub paths: Vec<Template>,
    /// Leases that Creates name, and where.
    pub leases: Vec<(PathId, Range<usize>)>,
    pub tracker: Tracker,
    pub defaults: Defaults,
}

impl Building<'_> {
    /// The number of a path or pattern.
    pub fn path(&mut self, source: Source<'_>, at: &At<&str>, is_path: bool) -> Read<PathId> {
        let names: Vec<&str> = self.picks.iter().map(|pick| pick.name.as_str()).collect();
        let template = Template::parse(at.value, is_path, &names)
            .map_err(|text| source.error(at.span.clone(), text))?;
        let index = self.paths.iter().position(|known| *known == template).unwrap_or_else(|| {
            self.paths.push(template);
            self.paths.len() - 1
        });
        Ok(PathId(index as u16))
    }

    /// The number of a file.
    pub fn pick(&self, source: Source<'_>, at: &At<&str>) -> Read<PickId> {
        if let Some(index) = self.picks.iter().position(|pick| pick.name == at.value) {
            return Ok(PickId(index as u8));
        }
        let known: Vec<&str> = self.picks.iter().map(|pick| pick.name.as_str()).collect();
        let error =
            source.error(at.span.clone(), format!("the scenario has no file `{}`", at.value));
        Err(error.help(format!("its `files` has {}", quoted(&known))))
    }
}

/// The bits of a list of words.
pub(super) fn bits(table: &Table<'_>, key: &'static str, words: Words, default: u32) -> Read<u32> {
    let Some(list) = table.texts(key)? else { return Ok(default) };
    list.value
        .into_iter()
        .try_fold(0, |bits, word| Ok(bits | word_value(table.source, key, words, &word)?))
}

/// The code of one word.
pub(super) fn code(table: &Table<'_>, key: &'static str, words: Words, default: u32) -> Read<u32> {
    let word = table.text(key)?;
    word.map_or(Ok(default), |word| word_value(table.source, key, words, &word))
}

fn word_value(source: Source<'_>, key: &str, words: Words, word: &At<&str>) -> Read<u32> {
    if let Some(&(_, value)) = words.iter().find(|(known, _)| *known == word.value) {
        return Ok(value);
    }
    let known = || words.iter().map(|&(known, _)| known);
    let what = format!("value of `{key}`");
    unknown(source, word.span.clone(), &what, word.value, &known().collect::<Vec<_>>())
}

/// The error of an unknown word.
pub(super) fn unknown<T>(
    source: Source<'_>,
    span: Range<usize>,
    what: &str,
    word: &str,
    known: &[&str],
) -> Read<T> {
    let error = source.error(span, format!("`{word}` is not a known {what}"));
    Err(match nearest(word, known.iter().copied()) {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => error.help(format!("there is {}", quoted(known))),
    })
}

/// A status by its name.
pub(super) fn status(source: Source<'_>, name: &At<&str>) -> Read<Status> {
    if let Some(status) = Status::from_name(name.value) {
        return Ok(status);
    }
    let error = source.error(name.span.clone(), format!("`{}` is not a known status", name.value));
    Err(error.help(match nearest(name.value, Status::names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "names are those of MS-ERREF section 2.3.1, with STATUS_".into(),
    }))
}
