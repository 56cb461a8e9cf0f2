//! Files about a namespace, recognised by content: exports, directory objects, outputs of PowerShell, links of Samba,
//! caches of clients, lists of shares.
//!
//! Owns the order in which forms are recognised and how pieces of several files become one namespace; each form has one
//! file below. It judges nothing: that is [`super::check`].

use serde::Serialize;

use super::form::Form;
use super::model::{ClientCache, Link, Namespace, Target};
use crate::input::Damage;
use crate::input::powershell::{is_clixml, is_csv_heading};
use crate::input::text::decode;
use crate::input::unknown::Unknowns;

mod blob;
pub(super) mod cache;
mod directory;
mod export;
mod fragments;
mod ldif;
mod msdfs;
mod objects;
mod outputs;
mod script;
mod shares;
mod target_list;
#[cfg(test)]
mod tests;
mod view;

pub(super) use blob::{derived_guid, guid_text};
pub(super) use directory::{PLACEHOLDER_TIME, guid_of, link_dn, namespace_dn, remote_servers};
pub(super) use export::{SWITCH, SWITCHES};
pub(super) use ldif::BASE64;
pub use msdfs::link_list;
pub(super) use msdfs::{CONF_HEADER, HEADER as MSDFS_HEADER};
pub use shares::{ShareList, ShareSource};
pub(super) use target_list::NAMESPACE as TARGET_LIST_NAMESPACE;

/// Longest file that is read.
const BYTES_MAX: usize = 512 << 20;
/// Links and targets of one namespace.
pub(super) const LINKS_MAX: usize = 4_000_000;
/// Targets of one root or link: they are compared with each other.
const TARGETS_MAX: usize = 1_000;

/// Adds a target of a root or link.
pub(super) fn push_target(targets: &mut Vec<Target>, target: Target) -> Result<(), String> {
    if targets.len() >= TARGETS_MAX {
        return Err(format!("more than {TARGETS_MAX} targets of one root or link"));
    }
    targets.push(target);
    Ok(())
}

/// Where something was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Index into [`Reading::files`].
    pub file: u32,
    /// Number of the line, the first is 1; 0 if it has none.
    pub line: u32,
}

/// A namespace, and where it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadNamespace {
    pub namespace: Namespace,
    pub form: Form,
    pub place: Place,
    /// Place of each link, in the order of [`Namespace::links`].
    pub link_places: Vec<Place>,
    /// Size of the blob: as `dfsutil /view` prints it, or as the directory has it.
    pub blob_bytes: Option<u64>,
    /// Values of `remoteServerName` of a v1 object that are not among its root targets, and root targets that are not
    /// among the values.
    pub root_servers_differ: Vec<String>,
}

/// A link of the directory whose namespace is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// Distinguished name of the object.
    pub dn: String,
    pub link: Link,
    pub place: Place,
}

/// What the files hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reading {
    pub files: Vec<String>,
    pub namespaces: Vec<ReadNamespace>,
    pub caches: Vec<ClientCache>,
    pub shares: Vec<ShareList>,
    /// Links of the directory without a namespace.
    pub orphans: Vec<Orphan>,
    /// Distinguished names of links that the directory remembers as deleted.
    pub deleted: Vec<String>,
    /// Lines that no reader understood.
    pub unknown: Unknowns,
}

impl Reading {
    /// `FILE:LINE` of a place.
    pub fn place(&self, place: Place) -> String {
        let file = self.files.get(place.file as usize).map_or("", String::as_str);
        if place.line == 0 { file.to_owned() } else { format!("{file}:{}", place.line) }
    }

    fn note(&mut self, place: Place, text: &str) {
        let file = self.files.get(place.file as usize).map_or("", String::as_str);
        self.unknown.note(file, place.line.into(), text, "");
    }
}

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadError {
    pub file: String,
    /// Number of the line, the first is 1.
    pub line: usize,
    pub message: String,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: line {}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

pub(super) type Damaged<T> = Result<T, Damage>;

fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Reads files, given as names and bytes. Objects of PowerShell from several files become one namespace, as do the links
/// of a Samba share and its `smb.conf`. An error names the first line that is damaged, or says that no known form was
/// found.
pub fn read(files: &[(String, Vec<u8>)]) -> Result<Reading, ReadError> {
    let mut reading = Reading::default();
    let mut objects = objects::Objects::default();
    let mut samba = msdfs::Samba::default();
    for (number, (name, bytes)) in files.iter().enumerate() {
        let file = u32::try_from(number).unwrap_or(u32::MAX);
        reading.files.push(name.clone());
        let damaged = |damage: Damage| ReadError {
            file: name.clone(),
            line: damage.line,
            message: damage.message,
        };
        if bytes.len() > BYTES_MAX {
            let message = format!("{} bytes; at most {BYTES_MAX} are read", bytes.len());
            return Err(damaged(Damage::new(1, message)));
        }
        let text = decode(bytes).text;
        let mut context =
            Context { file, name, reading: &mut reading, objects: &mut objects, samba: &mut samba };
        context.read(&text).map_err(damaged)?;
    }
    objects.finish(&mut reading);
    samba.finish(&mut reading);
    Ok(reading)
}

/// What the readers of one file add to.
pub(super) struct Context<'a> {
    file: u32,
    name: &'a str,
    reading: &'a mut Reading,
    objects: &'a mut objects::Objects,
    samba: &'a mut msdfs::Samba,
}

impl Context<'_> {
    fn place(&self, line: usize) -> Place {
        Place { file: self.file, line: line_number(line) }
    }

    fn note(&mut self, line: usize, text: &str) {
        self.reading.note(self.place(line), text);
    }

    /// The file's name without folders and ending, which is often a machine's.
    fn stem(&self) -> &str {
        let name = self.name.rsplit(['/', '\\']).next().unwrap_or(self.name);
        name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name)
    }

    fn read(&mut self, text: &str) -> Damaged<()> {
        let start = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        match recognise(start) {
            Some(Content::Xml) => export::read(text, self),
            Some(Content::Ldif) => directory::read(text, self),
            Some(Content::CliXml) => objects::read_clixml(text, self),
            Some(Content::Json) => objects::read_json(text, self),
            Some(Content::Csv) => objects::read_csv(text, self),
            Some(Content::Script) => script::read(text, self),
            Some(Content::SmbConf) => msdfs::read_conf(text, self),
            Some(Content::Msdfs) => msdfs::read_links(text, self),
            None => outputs::read(text, self),
        }
    }
}

/// Forms that fill a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Xml,
    CliXml,
    Ldif,
    Json,
    Csv,
    Script,
    SmbConf,
    Msdfs,
}

/// Lines at the beginning that decide what a file is.
const HEAD_LINES: usize = 400;

fn recognise(text: &str) -> Option<Content> {
    if text.starts_with('<') {
        return Some(if is_clixml(text) { Content::CliXml } else { Content::Xml });
    }
    let lines = || text.lines().take(HEAD_LINES).map(str::trim);
    if text.starts_with(msdfs::HEADER) {
        return Some(Content::Msdfs);
    }
    if text.starts_with(msdfs::CONF_HEADER) {
        return Some(Content::SmbConf);
    }
    // The first line decides where it can: names and comments further down may look like anything.
    let first = lines().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    if ["dn:", "version:"].iter().any(|word| fragments::after(first, word).is_some()) {
        return Some(Content::Ldif);
    }
    let is_command = |line: &str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        ["New-Dfsn", "Set-Dfsn"]
            .iter()
            .any(|verb| name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(verb)))
    };
    if lines().any(is_command) {
        return Some(Content::Script);
    }
    let is_heading =
        |line: &str| line.starts_with('[') && line.ends_with(']') && !line.contains('"');
    let is_setting = |line: &str| {
        let name: String =
            line.chars().filter(|c| !c.is_whitespace()).take_while(|c| *c != '=').collect();
        name.eq_ignore_ascii_case("msdfsroot") || name.eq_ignore_ascii_case("msdfsproxy")
    };
    if lines().any(is_heading) && lines().any(|line| line == "[global]" || is_setting(line)) {
        return Some(Content::SmbConf);
    }
    if matches!(text.chars().next(), Some('[' | '{')) {
        return Some(Content::Json);
    }
    if lines().any(|line| {
        let line = line.get(..3).unwrap_or_default();
        line.eq_ignore_ascii_case("dn:")
    }) {
        return Some(Content::Ldif);
    }
    if lines().any(|line| line.contains("msdfs:") || line.starts_with(msdfs::HEADER)) {
        return Some(Content::Msdfs);
    }
    is_csv_heading(text, objects::is_path_name).then_some(Content::Csv)
}
