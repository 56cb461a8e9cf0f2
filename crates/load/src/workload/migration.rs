//! Workloads that move bulk data: their language, and changes from the command line.
//!
//! Such a workload has a table `[migration]` instead of scenarios. `crate::migrate` runs it.

use toml::de::DeTable;

use super::building::block;
use super::change::{BadChange, range};
use super::error::{Source, WorkloadError};
use super::table::Table;
use crate::fileset::BLOCK_BYTES;
use crate::fileset::FileRef;
use crate::fileset::names::name_problem;
use crate::fileset::random::mix;

/// Most streams of a migration.
pub const STREAMS_MAX: u16 = 256;
/// Purpose of the keys of contents; never changes. Those of other purposes are below.
const PURPOSE_MIGRATION: u64 = 64;

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the share.
    Out,
    /// From the share.
    In,
    /// Half of the streams each way.
    Both,
}

impl Direction {
    /// All, with their names.
    pub const ALL: [(&str, Direction); 3] =
        [("out", Direction::Out), ("in", Direction::In), ("both", Direction::Both)];

    /// The name in workloads and on the command line.
    pub fn name(self) -> &'static str {
        Direction::ALL.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// There is no such direction.
    pub fn parse(text: &str) -> Result<Direction, String> {
        let found = Direction::ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, one)| *one)
            .ok_or_else(|| "expected out (to the share), in (from it) or both".to_owned())
    }
}

/// A workload that moves bulk data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its name.
    pub name: String,
    /// One sentence about it.
    pub description: String,
    /// Payload of a request.
    pub block_bytes: u32,
    /// Requests in flight on each channel.
    pub depth: u16,
    /// Which way the data goes.
    pub direction: Direction,
    /// Size of each stream's file.
    pub bytes: u64,
    /// Streams at the same time.
    pub streams: u16,
    /// Folder of the files, with `\`.
    pub folder: String,
    /// Name of a file; `{n}` is the stream's number.
    pub file: String,
}

/// Changes from the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MigrationChanges {
    /// Payload of a request.
    pub block_bytes: Option<u32>,
    /// Requests in flight on each channel.
    pub depth: Option<u16>,
    /// Size of each stream's file.
    pub bytes: Option<u64>,
    /// Streams at the same time.
    pub streams: Option<u16>,
    /// Which way the data goes.
    pub direction: Option<Direction>,
}

/// One stream: its file, and which way its data goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The file below the share's folder, with `\`.
    pub path: String,
    /// Size and content.
    pub file: FileRef,
    /// Whether the data goes to the share.
    pub is_out: bool,
}

impl Migration {
    /// Reads a workload; `None` if it has scenarios instead of a migration.
    ///
    /// # Errors
    /// The text is not a workload that moves bulk data.
    pub fn parse(file: &str, name: &str, toml: &str) -> Result<Option<Migration>, WorkloadError> {
        let source = Source { file, text: toml };
        // Errors of the language itself are reported when it is read as a workload of scenarios.
        let Ok(document) = DeTable::parse(toml) else { return Ok(None) };
        let table = Table::new(source, document.get_ref(), 0..0, "a workload with a migration");
        let Some(migration) = table.table("migration", "[migration]")? else { return Ok(None) };
        let direction = migration.need_text("direction")?;
        let direction = Direction::parse(direction.value)
            .map_err(|error| source.error(direction.span, format!("`direction`: {error}")))?;
        let folder = migration.text("folder")?;
        let pattern = migration.need_text("name")?;
        let bytes = migration.bytes("size")?.ok_or_else(|| migration.missing("size"))?;
        if bytes.value == 0 {
            return Err(source.error(bytes.span, "`size` must be at least 1 byte"));
        }
        for part in folder.iter().flat_map(|folder| folder.value.split('/')) {
            if let (Some(problem), Some(folder)) = (name_problem(part, 0), &folder) {
                return Err(source.error(folder.span.clone(), format!("`folder`: {problem}")));
            }
        }
        if let Some(problem) = name_problem(pattern.value, 0) {
            return Err(source.error(pattern.span, format!("`name`: {problem}")));
        }
        if !pattern.value.contains("{n}") {
            let error = source.error(pattern.span, "the names of all streams would be the same");
            return Err(error.help("write {n} where the stream's number goes"));
        }
        let most = u64::from(STREAMS_MAX) + 1;
        let read = Migration {
            name: name.to_owned(),
            description: table.text("description")?.map_or("", |text| text.value).to_owned(),
            block_bytes: block(table.bytes("block")?, source, BLOCK_BYTES as u32)?,
            depth: table.number("depth", 1..1025)?.map_or(8, |depth| depth.value as u16),
            direction,
            bytes: bytes.value,
            streams: migration.number("streams", 1..most)?.map_or(1, |count| count.value as u16),
            folder: folder.map_or(String::new(), |folder| folder.value.replace('/', "\\")),
            file: pattern.value.to_owned(),
        };
        migration.finish()?;
        table.finish()?;
        Ok(Some(read))
    }

    /// The migration with these changes.
    ///
    /// # Errors
    /// A value is out of range.
    pub fn with_changes(mut self, changes: &MigrationChanges) -> Result<Migration, BadChange> {
        if let Some(block) = changes.block_bytes {
            range("block", block.into(), 1, 8 << 20, "from 1 byte to 8 MiB")?;
            self.block_bytes = block;
        }
        if let Some(depth) = changes.depth {
            range("depth", depth.into(), 1, 1024, "from 1 to 1024 requests in flight")?;
            self.depth = depth;
        }
        if let Some(bytes) = changes.bytes {
            range("size", bytes, 1, (1 << 50) - 1, "from 1 byte to below 1 PiB")?;
            self.bytes = bytes;
        }
        if let Some(streams) = changes.streams {
            let most = STREAMS_MAX.into();
            range("streams", streams.into(), 1, most, "from 1 to 256 streams")?;
            self.streams = streams;
        }
        self.direction = changes.direction.unwrap_or(self.direction);
        if self.direction == Direction::Both && self.streams < 2 {
            self.streams = 2;
        }
        Ok(self)
    }

    /// The streams. Contents follow from the seed, the stream's number and the place in the file.
    pub fn streams(&self, seed: u64) -> Vec<Stream> {
        let stream = |number: u16| {
            let name = self.file.replace("{n}", &number.to_string());
            let path = match self.folder.as_str() {
                "" => name,
                folder => format!("{folder}\\{name}"),
            };
            let key = mix(mix(seed, PURPOSE_MIGRATION), u64::from(number));
            let file = FileRef { pool: 0, index: u32::from(number), bytes: self.bytes, key };
            let is_out = match self.direction {
                Direction::Out => true,
                Direction::In => false,
                Direction::Both => number % 2 == 1,
            };
            Stream { path, file, is_out }
        };
        (1..=self.streams).map(stream).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{MIGRATIONS, Workload};

    fn built_in() -> Migration {
        let (name, text) = MIGRATIONS[0];
        Migration::parse(name, name, text).unwrap().unwrap()
    }

    #[test]
    fn the_built_in_is_read_and_changed() {
        let migration = built_in();
        assert_eq!((migration.block_bytes, migration.depth, migration.streams), (1 << 20, 8, 1));
        let changes = MigrationChanges {
            block_bytes: Some(65_536),
            bytes: Some(100),
            direction: Some(Direction::Both),
            ..MigrationChanges::default()
        };
        let changed = migration.clone().with_changes(&changes).unwrap();
        let streams = changed.streams(1);
        let ways: Vec<bool> = streams.iter().map(|stream| stream.is_out).collect();
        assert_eq!((ways, changed.block_bytes), (vec![true, false], 65_536));
        assert_eq!(streams[0].path, "smbscope-migrate\\memory 1.bin");
        assert_ne!(streams[0].file.key, streams[1].file.key);
        assert_ne!(streams[0].file.key, changed.streams(2)[0].file.key);
        let wrong = MigrationChanges { depth: Some(0), ..MigrationChanges::default() };
        assert!(migration.with_changes(&wrong).unwrap_err().to_string().contains("--depth"));
    }

    #[test]
    fn errors_have_a_place() {
        let read = |toml: &str| Migration::parse("f.toml", "f", toml);
        assert_eq!(read("[scenarios.X]\nsteps = []"), Ok(None));
        for (toml, part) in [
            ("[migration]\nname = 'a{n}'\nsize = 1", "needs `direction`"),
            ("[migration]\ndirection = 'up'\nname = 'a{n}'\nsize = 1", "f.toml:2:13"),
            ("[migration]\ndirection = 'in'\nname = 'a'\nsize = 1", "the same"),
            ("[migration]\ndirection = 'in'\nname = 'a{n}'\nsize = 0", "at least 1"),
            ("[migration]\ndirection = 'in'\nname = 'a{n}'\nsize = 1\nspeed = 2", "no key `speed`"),
            ("[migration]\ndirection = 'in'\nname = 'a{n}'\nsize = 1\nfolder = '..'", "`folder`"),
            ("depth = 0\n[migration]\ndirection = 'in'\nname = 'a{n}'\nsize = 1", "`depth`"),
        ] {
            let error = read(toml).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        // A workload of scenarios does not accept the table, and points to it.
        assert!(Workload::parse("f", "f", MIGRATIONS[0].1).is_err());
    }
}
