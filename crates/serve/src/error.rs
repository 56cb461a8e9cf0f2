//! Errors of a request, and of the server.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is wrong.
    #[error("{0}")]
    Request(String),
    /// The query failed.
    #[error(transparent)]
    Query(#[from] smbscope_store::Error),
    /// The rows could not be written in the requested format.
    #[error("the table cannot be written: {0}")]
    Write(String),
    /// The report could not be made.
    #[error("{0:#}")]
    Report(anyhow::Error),
    /// The address cannot be used.
    #[error("{address}: {error}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        error: std::io::Error,
    },
}

impl Error {
    /// A wrong request.
    pub fn request(what: impl Into<String>) -> Error {
        Error::Request(what.into())
    }
}
