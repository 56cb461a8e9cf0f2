//! A run folder that a recording is written to, whoever makes it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use smbscope_capture::Part;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions, may_write};
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::manifest::{InputFile, Kind, Manifest};

use crate::commands::dataset::cannot;
use crate::exit::{Code, Failure};

/// A folder while it is written. Only its owner can read it.
pub struct Folder {
    writer: DatasetWriter,
    out: PathBuf,
}

impl Folder {
    /// Begins a new or empty one, or replaces a dataset. `created_at` is in ns since 1970.
    pub fn create(
        out: &Path,
        inputs: Vec<String>,
        created_at: i64,
        overwrite: bool,
        tokenizer: Option<Tokenizer>,
    ) -> anyhow::Result<Folder> {
        // The format stands there when the coverage came.
        let input = |name| InputFile { name, ..InputFile::default() };
        let inputs = inputs.into_iter().map(input).collect();
        let seed = ManifestSeed { created_at, ..ManifestSeed::now(Kind::Record, inputs) };
        let options = WriteOptions { overwrite, tokenizer, ..WriteOptions::default() };
        Folder::make(out, overwrite)?;
        let writer = DatasetWriter::create(out, seed, options).with_context(|| cannot(out))?;
        Ok(Folder { writer, out: out.to_owned() })
    }

    /// Makes the folder itself, which can take rights that its writing does not.
    pub fn make(out: &Path, overwrite: bool) -> anyhow::Result<()> {
        may_write(out, overwrite).with_context(|| cannot(out))?;
        std::fs::create_dir_all(out).with_context(|| cannot(out))?;
        close_to_others(out)
    }

    /// Takes rows.
    pub fn part(&mut self, part: Part) -> anyhow::Result<()> {
        self.writer.part(part).with_context(|| cannot_any_more(&self.out))
    }

    /// Completes the parts before their time, so that they take no memory.
    pub fn complete_parts(&mut self) -> anyhow::Result<()> {
        self.writer.complete_parts().with_context(|| cannot_any_more(&self.out))
    }

    /// Completes it, and says whether everything came that was to come.
    pub fn finish(self, complete: bool) -> anyhow::Result<Manifest> {
        self.writer.finish(complete).with_context(|| cannot_any_more(&self.out))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.out
    }
}

fn cannot_any_more(out: &Path) -> Failure {
    let message = format!(
        "{}: the recording cannot be written any more; its complete parts stay",
        out.display()
    );
    Failure::new(Code::Output, message)
}

/// What this process writes from now on its owner alone can read: a recording names persons and
/// their files.
pub fn keep_private() {
    #[cfg(target_os = "linux")]
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}

/// The same of a folder that was there before.
fn close_to_others(out: &Path) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(out, closed).with_context(|| cannot(out))?;
    }
    Ok(())
}
