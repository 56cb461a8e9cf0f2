//! The run folder that a recording is written to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use smbscope_capture::Part;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions, may_write};
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::manifest::{InputFile, Kind, Manifest};

use crate::exit::{Code, Failure};

/// Rows are in a file after this time. They come once a second, so that a kill loses little more than a second.
const VISIBLE_EVERY: Duration = Duration::from_millis(250);

/// What the manifest says about a recording.
pub struct About {
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// When it began, ns since 1970.
    pub created_at: i64,
    /// Its filter in words.
    pub filter: Option<String>,
}

/// A run folder that is being written. Only its owner can read it.
pub struct RecordingFolder {
    writer: DatasetWriter,
    out: PathBuf,
}

impl RecordingFolder {
    /// Starts a dataset in a new or empty folder, or replaces one.
    pub fn create(
        out: &Path,
        about: About,
        overwrite: bool,
        tokenizer: Option<Tokenizer>,
    ) -> anyhow::Result<RecordingFolder> {
        // The coverage adds the format later.
        let input = |name| InputFile { name, ..InputFile::default() };
        let About { inputs, created_at, filter } = about;
        let inputs = inputs.into_iter().map(input).collect();
        let seed = ManifestSeed { created_at, filter, ..ManifestSeed::now(Kind::Record, inputs) };
        let visible = Some(VISIBLE_EVERY);
        let options = WriteOptions { overwrite, tokenizer, visible, ..WriteOptions::default() };
        RecordingFolder::create_folder(out, overwrite)?;
        let writer =
            DatasetWriter::create(out, seed, options).with_context(|| cannot_write(out))?;
        Ok(RecordingFolder { writer, out: out.to_owned() })
    }

    /// Creates the folder itself, which may need capabilities that writing into it does not.
    pub fn create_folder(out: &Path, overwrite: bool) -> anyhow::Result<()> {
        may_write(out, overwrite).with_context(|| cannot_write(out))?;
        std::fs::create_dir_all(out).with_context(|| cannot_write(out))?;
        restrict_to_owner(out)
    }

    /// Writes rows.
    pub fn part(&mut self, part: Part) -> anyhow::Result<()> {
        self.writer.part(part).with_context(|| write_failed(&self.out))
    }

    /// Completes the parts early, so that they use no memory.
    pub fn complete_parts(&mut self) -> anyhow::Result<()> {
        self.writer.complete_parts().with_context(|| write_failed(&self.out))
    }

    /// Completes the dataset. `complete` says whether all rows arrived.
    pub fn finish(self, complete: bool) -> anyhow::Result<Manifest> {
        self.writer.finish(complete).with_context(|| write_failed(&self.out))
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.out
    }
}

/// The error of a dataset that cannot be written.
pub fn cannot_write(out: &Path) -> Failure {
    Failure::new(Code::Output, format!("{}: dataset cannot be written", out.display()))
}

fn write_failed(out: &Path) -> Failure {
    let message =
        format!("{}: writing the recording failed; its complete parts are kept", out.display());
    Failure::new(Code::Output, message)
}

/// From now on, only the owner can read the files that this process creates: a recording contains names of people
/// and files.
pub fn keep_private() {
    #[cfg(target_os = "linux")]
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}

/// Restricts a folder that existed before to its owner.
fn restrict_to_owner(out: &Path) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(out, closed).with_context(|| cannot_write(out))?;
    }
    Ok(())
}
