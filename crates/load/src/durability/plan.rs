//! What a run writes: ways, patterns and the writers ([`Lane`]) that combine them; the header of a journal.

use serde::{Deserialize, Serialize};

use super::block::SECTOR_BYTES;

/// Most writers.
pub const LANES_MAX: usize = 256;
/// Largest block.
pub const BLOCK_BYTES_MAX: u32 = 8 << 20;
/// Most blocks of one writer, so that what a verification remembers is limited.
pub const BLOCKS_MAX: u64 = 1 << 22;

/// A way in which applications write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Write and Close, nothing else.
    Plain,
    /// A Flush after the reply to each Write.
    FlushEach,
    /// A Flush before each Close.
    FlushClose,
    /// Opened with FILE_WRITE_THROUGH.
    OpenThrough,
    /// Each Write with SMB2_WRITEFLAG_WRITE_THROUGH.
    WriteThrough,
    /// Opened with FILE_NO_INTERMEDIATE_BUFFERING, and Writes with SMB2_WRITEFLAG_WRITE_UNBUFFERED.
    Unbuffered,
    /// A persistent handle on a continuously available share.
    Persistent,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 7] = [
        Way::Plain,
        Way::FlushEach,
        Way::FlushClose,
        Way::OpenThrough,
        Way::WriteThrough,
        Way::Unbuffered,
        Way::Persistent,
    ];

    /// Its name in options, journals and reports.
    pub fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::FlushEach => "flush-each",
            Way::FlushClose => "flush-close",
            Way::OpenThrough => "open-through",
            Way::WriteThrough => "write-through",
            Way::Unbuffered => "unbuffered",
            Way::Persistent => "persistent",
        }
    }

    /// What an application does, for people.
    pub fn description(self) -> &'static str {
        match self {
            Way::Plain => "Write, Close",
            Way::FlushEach => "Flush after each Write",
            Way::FlushClose => "Flush before Close",
            Way::OpenThrough => "opened with write-through",
            Way::WriteThrough => "Writes with the write-through flag",
            Way::Unbuffered => "unbuffered open and Writes",
            Way::Persistent => "persistent handle, continuously available share",
        }
    }

    /// The way of a name.
    pub fn parse(name: &str) -> Option<Way> {
        Way::ALL.into_iter().find(|way| way.name() == name)
    }

    /// Whether the reply to a Write promises that the data is durable. With the Flush ways, the reply to
    /// the Flush does; the others promise nothing.
    pub fn promises_at_write(self) -> bool {
        matches!(self, Way::OpenThrough | Way::WriteThrough | Way::Persistent)
    }

    /// Its number in blocks.
    pub fn number(self) -> u16 {
        self as u16
    }
}

/// The order in which a writer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Block after block, file after file; from the first file again at the end.
    Append,
    /// Blocks of a file in random order.
    Overwrite,
    /// A new file is written and then renamed over the one before it, as applications save documents.
    Rename,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 3] = [Pattern::Append, Pattern::Overwrite, Pattern::Rename];

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Append => "append",
            Pattern::Overwrite => "overwrite",
            Pattern::Rename => "rename",
        }
    }

    /// The pattern of a name.
    pub fn parse(name: &str) -> Option<Pattern> {
        Pattern::ALL.into_iter().find(|pattern| pattern.name() == name)
    }
}

/// A writer: one session that writes in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// How.
    pub way: Way,
    /// In which order.
    pub pattern: Pattern,
    /// Bytes of a Write: a multiple of 512.
    pub block_bytes: u32,
    /// Writes in flight.
    pub depth: u16,
    /// Files in turn; renamed files are one at a time.
    pub files: u32,
    /// Blocks of a file.
    pub blocks: u32,
}

/// A run: what the header of its journal says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Identifier of the run, 32 hexadecimal digits.
    pub run: String,
    /// The share, as given.
    pub target: String,
    /// The run's folder below the share, with backslashes.
    pub folder: String,
    /// When it began, ns since 1970.
    pub start_ns: i64,
    /// Writers, by number.
    pub lanes: Vec<Lane>,
}

/// What a user chooses.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Ways.
    pub ways: Vec<Way>,
    /// Patterns.
    pub patterns: Vec<Pattern>,
    /// Block sizes: writers take them in turn.
    pub block_bytes: Vec<u32>,
    /// Depths, likewise.
    pub depths: Vec<u16>,
    /// Files of a writer.
    pub files: u32,
    /// Bytes of a file.
    pub file_bytes: u64,
}

/// The folder below the target in which each run has one of its own.
pub const FOLDER: &str = "smbscope-durability";
/// Blocks of a file that is renamed.
const RENAMED_BLOCKS: u32 = 8;

impl Choice {
    /// One writer for each way and pattern; sizes and depths in turn, so that each occurs with each way if
    /// there are as many as patterns.
    pub fn lanes(&self) -> Vec<Lane> {
        let mut lanes = Vec::new();
        for (turn, way) in self.ways.iter().enumerate() {
            for (place, pattern) in self.patterns.iter().enumerate() {
                let of = |count: usize| (turn + place) % count.max(1);
                let block_bytes =
                    self.block_bytes.get(of(self.block_bytes.len())).copied().unwrap_or(65_536);
                let depth = self.depths.get(of(self.depths.len())).copied().unwrap_or(1);
                let blocks = (self.file_bytes / u64::from(block_bytes.max(1))).max(1);
                let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                let (files, blocks) = match pattern {
                    Pattern::Rename => (1, blocks.min(RENAMED_BLOCKS)),
                    Pattern::Append | Pattern::Overwrite => (self.files.max(1), blocks),
                };
                lanes.push(Lane {
                    way: *way,
                    pattern: *pattern,
                    block_bytes,
                    depth,
                    files,
                    blocks,
                });
            }
        }
        lanes
    }
}

/// The identifier of a new run.
///
/// # Errors
/// This machine has no random bytes.
pub fn random_run() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Plan {
    /// The run's identifier as bytes.
    pub fn run_bytes(&self) -> Option<[u8; 16]> {
        let mut bytes = [0; 16];
        let digits = self.run.as_bytes();
        if digits.len() != 32 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
        }
        Some(bytes)
    }

    /// What is wrong with it, if anything: a journal may come from anywhere.
    ///
    /// # Errors
    /// The first property that is out of range, in words.
    pub fn check(&self) -> Result<(), String> {
        if self.run_bytes().is_none() {
            return Err("the identifier of the run is not 32 hexadecimal digits".into());
        }
        if self.lanes.is_empty() || self.lanes.len() > LANES_MAX {
            return Err(format!("{} writers: 1 to {LANES_MAX} are possible", self.lanes.len()));
        }
        let forbidden = |c: char| c.is_control() || "\"/:|<>+*?".contains(c);
        if self.folder.is_empty()
            || self.folder.split('\\').any(|part| part == ".." || part.contains(forbidden))
        {
            return Err(format!("the folder {:?} is not a path below a share", self.folder));
        }
        for (number, lane) in self.lanes.iter().enumerate() {
            let wrong = |what: &str| Err(format!("writer {number}: {what}"));
            if lane.block_bytes == 0
                || lane.block_bytes > BLOCK_BYTES_MAX
                || !(lane.block_bytes as usize).is_multiple_of(SECTOR_BYTES)
            {
                return wrong("a block is a multiple of 512 bytes, at most 8 MiB");
            }
            if lane.depth == 0 || lane.depth > 256 {
                return wrong("1 to 256 writes can be in flight");
            }
            let blocks = u64::from(lane.files) * u64::from(lane.blocks);
            if blocks == 0 || blocks > BLOCKS_MAX {
                return wrong("its files have no blocks, or more than 4,194,304");
            }
        }
        Ok(())
    }

    /// The folder in which runs have theirs, if that is [`FOLDER`].
    pub fn folder_of_runs(&self) -> Option<&str> {
        let (parent, _) = self.folder.rsplit_once('\\')?;
        (parent.rsplit('\\').next() == Some(FOLDER)).then_some(parent)
    }

    /// The folder of a round.
    pub fn round_folder(&self, round: u32) -> String {
        format!("{}\\r{round}", self.folder)
    }

    /// A file of a writer in a round: for [`Pattern::Rename`] the new file of a version.
    pub fn file(&self, round: u32, lane: u16, file: u32) -> String {
        format!("{}\\w{lane:03}-{file}.dat", self.round_folder(round))
    }

    /// The file over which a writer of [`Pattern::Rename`] renames.
    pub fn renamed(&self, round: u32, lane: u16) -> String {
        format!("{}\\w{lane:03}.dat", self.round_folder(round))
    }
}
