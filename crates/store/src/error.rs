//! Errors of this crate. Each message says what is wrong, where, and what to do.

use std::path::{Path, PathBuf};

use smbscope_tables::manifest::ManifestError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input does not exist.
    #[error("{}: no such file or folder", .0.display())]
    NotFound(PathBuf),
    /// A file or folder that smbscope cannot read.
    #[error("{}: {what}", .path.display())]
    NotRecognised {
        /// The input.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// The output folder exists.
    #[error("{}: {what}", .path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
        /// What it contains and what to do.
        what: &'static str,
    },
    /// An error of the operating system.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A Parquet file could not be written or read.
    #[error("{}: {error}", .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        error: parquet::errors::ParquetError,
    },
    /// A manifest could not be read.
    #[error("{}: {error}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ManifestError,
    },
    /// A dataset of a newer smbscope.
    #[error(
        "{}: written with schema version {version}, which is newer than this smbscope: use a newer one",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A capture could not be decoded.
    #[error(transparent)]
    Capture(#[from] crate::capture::Error),
    /// Rows could not be converted.
    #[error("rows could not be converted: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// More than one input is a stream, and a stream can be read only once.
    #[error("only one input can be a stream: save the others to files first")]
    Streams,
    /// The SQL is invalid.
    #[cfg(feature = "sql")]
    #[error("{0}")]
    Sql(String),
    /// A query failed while it ran.
    #[cfg(feature = "sql")]
    #[error("{0}")]
    Query(String),
    /// A bug.
    #[error("internal error: {0}; please report it")]
    Internal(&'static str),
}

impl From<crate::trace::Error> for Error {
    fn from(error: crate::trace::Error) -> Error {
        match error {
            crate::trace::Error::Io(path, error) => Error::io(&path)(error),
            crate::trace::Error::Arrow(error) => Error::Arrow(error),
            crate::trace::Error::Symbols(path, what) => {
                Error::NotRecognised { path, what: what.to_owned() }
            }
        }
    }
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound(path),
            _ => Error::Io { path, error },
        }
    }

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
        let path = path.to_owned();
        move |error| Error::Parquet { path, error }
    }
}
