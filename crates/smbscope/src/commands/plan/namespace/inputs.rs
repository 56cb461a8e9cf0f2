//! Files of namespaces: bytes for the readers, links of a folder, names that resolve.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::ToSocketAddrs as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::model::Namespace;
use smbscope_plan::namespace::read::{self, Place, ReadNamespace, Reading};
use smbscope_plan::namespace::referral::namespaces;
use smbscope_plan::namespace::resolution::Resolution;
use smbscope_store::source::Input as StoreInput;

use super::bad;
use crate::exit::{Code, Failure};
use crate::options::{Reading as CaptureReading, Verbosity};
use crate::pipeline::namespace::referrals;

/// The longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Entries of a folder, and folders within each other.
const ENTRIES_MAX: usize = 1_000_000;
const DEPTH_MAX: usize = 64;
/// Names that are resolved.
const NAMES_MAX: usize = 1_000;

/// Reads files, folders and captures.
pub(super) fn read(
    paths: &[PathBuf],
    options: &CaptureReading,
    verbosity: &Verbosity,
) -> anyhow::Result<Reading> {
    let (mut files, mut captures) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.display().to_string();
        if matches!(StoreInput::recognise(&name), Ok(StoreInput::Capture { .. })) {
            captures.push(name);
            continue;
        }
        let metadata = std::fs::metadata(path)
            .map_err(|error| Failure::new(Code::Input, format!("{name}: {error}")))?;
        if metadata.is_dir() {
            {
                for one in folder(path)? {
                    // A folder has other files, too.
                    match read::read(std::slice::from_ref(&one)) {
                        Ok(_) => files.push(one),
                        Err(error) => verbosity.say(&format!("not read: {error}")),
                    }
                }
            }
        } else {
            files.push((name, bytes(path)?))
        }
    }
    if files.is_empty() && captures.is_empty() {
        let names = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        return Err(Failure::new(
            Code::NotRecognised,
            format!("{}: no file of a known form in it", names.join(", ")),
        )
        .into());
    }
    let mut reading =
        read::read(&files).map_err(|error| Failure::new(Code::NotRecognised, error.to_string()))?;
    for name in captures {
        captured(&name, &mut reading, options, verbosity)?;
    }
    if reading.unknown.count() > 0 {
        verbosity.say(&format!("{} lines were not understood:", reading.unknown.count()));
        for one in reading.unknown.list.iter().take(10) {
            verbosity.say(&format!("  {one}"));
        }
    }
    Ok(reading)
}

/// Adds the namespaces that clients of a capture saw.
fn captured(
    name: &str,
    reading: &mut Reading,
    options: &CaptureReading,
    verbosity: &Verbosity,
) -> anyhow::Result<()> {
    let source = options.open(&[name.to_owned()], None)?;
    let namespaces = namespaces(&referrals(&source, verbosity)?);
    if namespaces.is_empty() {
        return Err(bad(name, "the capture has no referral of a namespace"));
    }
    verbosity.say(&format!(
        "{name}: only links for which clients requested a referral are known, and no states or priorities"
    ));
    let file = u32::try_from(reading.files.len()).unwrap_or(u32::MAX);
    reading.files.push(name.to_owned());
    let place = Place { file, line: 0 };
    reading.namespaces.extend(namespaces.into_iter().map(|namespace| ReadNamespace {
        link_places: vec![place; namespace.links.len()],
        namespace,
        form: Form::Objects,
        place,
        blob_bytes: None,
        root_servers_differ: Vec::new(),
    }));
    Ok(())
}

/// A file's bytes.
pub(super) fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::new(Code::Input, format!("{name}: {error}")))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    match bytes.len() as u64 {
        ..=FILE_BYTES_MAX => Ok(bytes),
        _ => Err(bad(name, "longer than 1 GiB: not a namespace")),
    }
}

/// A folder of Samba whose symbolic links are DFS links, or a folder of files.
fn folder(path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let name = path.display().to_string();
    let (mut links, mut files, mut count) = (String::new(), Vec::new(), 0);
    let mut waiting = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
            count += 1;
            if count > ENTRIES_MAX || depth > DEPTH_MAX {
                return Err(bad(&name, "too many files: give the folder of the namespace"));
            }
            let (path_of, kind) = (entry.path(), entry.file_type()?);
            if kind.is_symlink() {
                let target = std::fs::read_link(&path_of)?;
                let below = path_of.strip_prefix(path).unwrap_or(&path_of);
                if let Some(target) = target.to_str().filter(|text| text.starts_with("msdfs:")) {
                    links.push_str(&format!("{}\t{target}\n", below.display()));
                }
            } else if kind.is_dir() {
                waiting.push((path_of, depth + 1));
            } else if kind.is_file() {
                files.push(path_of);
            }
        }
    }
    if !links.is_empty() {
        return Ok(vec![(name, links.into_bytes())]);
    }
    files.sort();
    let read = |path: PathBuf| Ok((path.display().to_string(), bytes(&path)?));
    let files = files.into_iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    if files.is_empty() {
        Err(bad(&name, "the folder has neither msdfs links nor files"))
    } else {
        Ok(files)
    }
}

/// The only namespace of the files.
pub(super) fn only(reading: &Reading) -> anyhow::Result<&Namespace> {
    match &reading.namespaces[..] {
        [one] => Ok(&one.namespace),
        [] => Err(bad(reading.files.join(", "), "no namespace in it")),
        several => Err(bad(
            reading.files.join(", "),
            format!(
                "{} namespaces in it: give one: {}",
                several.len(),
                several
                    .iter()
                    .map(|one| format!("\\\\{}\\{}", one.namespace.host, one.namespace.name))
                    .take(8)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        )),
    }
}

/// Which names resolve: of a file, or of this machine's resolver.
pub(super) fn resolution(
    hosts: Option<&Path>,
    asks: bool,
    reading: &Reading,
) -> anyhow::Result<Option<Resolution>> {
    if let Some(path) = hosts {
        let read = Resolution::read(&path.display().to_string(), &bytes(path)?);
        return Ok(Some(read.map_err(|error| Failure::usage(error.to_string()))?));
    }
    if !asks {
        return Ok(None);
    }
    let mut names = BTreeSet::new();
    for one in &reading.namespaces {
        names.insert(one.namespace.host.to_lowercase());
        let of_links = one.namespace.links.iter().flat_map(|link| &link.targets);
        let targets = one.namespace.targets.iter().chain(of_links);
        names.extend(targets.map(|target| target.server.to_lowercase()));
    }
    let mut resolution = Resolution::default();
    for name in names.iter().take(NAMES_MAX) {
        match (name.as_str(), 445).to_socket_addrs() {
            Ok(found) => {
                let mut found = found.peekable();
                if found.peek().is_none() {
                    resolution.add_nothing(name);
                }
                found.for_each(|address| resolution.add(name, address.ip()));
            }
            Err(_) => resolution.add_nothing(name),
        }
    }
    Ok(Some(resolution))
}
