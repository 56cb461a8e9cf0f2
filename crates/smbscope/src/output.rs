//! The output of a command: standard output, or the file that `--out` names.
//!
//! Writers of formats wrap errors in their own ways, some only as text. Here the first error is
//! remembered as it occurred, so that a closed pipe can be distinguished from a full disk.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use anyhow::Context as _;

use crate::exit::{Code, Failure};
use crate::{terminal, windows};

/// Whether files may be replaced: `--force`.
static FORCE: AtomicBool = AtomicBool::new(false);

/// Allows or forbids the whole program to replace files.
pub fn set_force(is_allowed: bool) {
    FORCE.store(is_allowed, Ordering::Relaxed);
}

/// Whether only errors are written to standard error: `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Allows or forbids [`say`] in the whole program.
pub fn set_quiet(is_quiet: bool) {
    QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Writes a line to standard error unless `--quiet` is given.
pub fn say(line: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        anstream::eprintln!("{line}");
    }
}

/// The output of a command.
pub struct Output {
    inner: BufWriter<Box<dyn Write + Send>>,
    watch: Watch,
    terminal: bool,
    colour: bool,
    /// The file, if it is new: it is removed if nothing is written to it.
    created: Option<PathBuf>,
}

/// Knows whether writing failed, also after the output was given away.
#[derive(Clone)]
pub struct Watch {
    name: Arc<str>,
    failed: Arc<OnceLock<(ErrorKind, String)>>,
}

impl Output {
    /// Standard output, with colour where that is wanted.
    pub fn stdout() -> Output {
        let mut output = Output::new(Box::new(io::stdout()), "standard output");
        output.terminal = terminal::stdout_is_terminal();
        output.colour = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        output
    }

    /// A new file, for its owner only; with `--force` one that exists is replaced: a symbolic link itself, not what it leads
    /// to. Devices and pipes are simply opened.
    pub fn file(path: &Path) -> anyhow::Result<Output> {
        windows::check_name(path)?;
        let name = path.display().to_string();
        let is_special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let may_replace = FORCE.load(Ordering::Relaxed) && !is_special;
        let file = if is_special {
            File::create(path)
        } else {
            let removed = if may_replace { std::fs::remove_file(path) } else { Ok(()) };
            match removed {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => new_file(path),
            }
        };
        let file = match file {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let message = format!("{name}: exists already; --force replaces it");
                return Err(Failure::new(Code::Output, message).into());
            }
            file => file.with_context(|| {
                Failure::new(Code::Output, format!("{name}: cannot be written"))
            })?,
        };
        let mut output = Output::new(Box::new(file), &name);
        output.created = (!may_replace && !is_special).then(|| path.to_owned());
        Ok(output)
    }

    /// `--out`, or standard output.
    pub fn open(out: Option<&PathBuf>) -> anyhow::Result<Output> {
        out.map_or_else(|| Ok(Output::stdout()), |path| Output::file(path))
    }

    /// An error where binary data would go to a terminal.
    pub fn check(out: Option<&PathBuf>, binary: bool) -> anyhow::Result<()> {
        if binary && out.is_none() && terminal::stdout_is_terminal() {
            let advice = "this format is not for terminals: add --out FILE, or redirect the output";
            return Err(Failure::usage(advice));
        }
        Ok(())
    }

    fn new(inner: Box<dyn Write + Send>, name: &str) -> Output {
        let watch = Watch { name: name.into(), failed: Arc::default() };
        let inner = BufWriter::with_capacity(1 << 16, inner);
        Output { inner, watch, terminal: false, colour: false, created: None }
    }

    /// Whether the output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The text that begins a style, and the one that ends it; both empty without colour.
    pub fn style(&self, style: Style) -> (String, &'static str) {
        if self.colour { (style.render().to_string(), "\x1b[0m") } else { (String::new(), "") }
    }

    /// The style of headings.
    pub fn bold(&self) -> (&'static str, &'static str) {
        if self.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") }
    }

    /// Knows later whether writing failed.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Writes text.
    pub fn text(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.write_all(text.as_bytes());
        self.watch.check(written)
    }

    /// Flushes the output. Must be called at the end, because errors while dropping are lost.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let flushed = self.flush();
        self.created = None;
        self.watch.check(flushed)
    }
}

/// Creates a file that only its owner can read: most outputs contain names.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Drop for Output {
    fn drop(&mut self) {
        // After an error, a new file without content would be in the way of the next attempt.
        if let Some(path) = self.created.take()
            && self.inner.buffer().is_empty()
            && std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() == 0)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes);
        self.watch.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.watch.note(flushed)
    }
}

impl Watch {
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != ErrorKind::Interrupted
        {
            let _ = self.failed.set((error.kind(), error.to_string()));
        }
        result
    }

    /// The output's own error where there was one, else the given error.
    pub fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        self.failure().unwrap_or(error)
    }

    /// Replaces an error of a format's writer by the output's own error.
    pub fn check<T, E>(&self, result: Result<T, E>) -> anyhow::Result<T>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let other = || anyhow::Error::new(error).context(format!("{}: cannot be made", self.name));
        Err(self.failure().unwrap_or_else(other))
    }

    fn failure(&self) -> Option<anyhow::Error> {
        Some(match self.failed.get()? {
            (ErrorKind::BrokenPipe, _) => {
                Failure::new(Code::Ok, "the reader of the output left").into()
            }
            (_, why) => {
                let message = format!("{}: cannot be written: {why}", self.name);
                Failure::new(Code::Output, message).into()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::code_of;

    struct Refuses(ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_its_owners_and_a_link_is_replaced_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
        std::fs::write(&victim, "kept").unwrap();
        symlink(&victim, &link).unwrap();
        assert!(Output::file(&link).is_err());
        set_force(true);
        let mut output = Output::file(&link).unwrap();
        set_force(false);
        output.text("new").unwrap();
        output.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "new");
        let metadata = std::fs::symlink_metadata(&link).unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_closed_pipe_is_success_and_a_full_disk_is_not() {
        for (kind, code) in
            [(ErrorKind::BrokenPipe, Code::Ok), (ErrorKind::StorageFull, Code::Output)]
        {
            let mut output = Output::new(Box::new(Refuses(kind)), "x");
            output.text("some").unwrap();
            assert_eq!(code_of(&output.finish().unwrap_err()), code);
        }
    }
}
