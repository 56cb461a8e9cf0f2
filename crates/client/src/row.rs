//! One operation's row on its way from a user's task to the recording.

use std::sync::Arc;

use smbscope_tables::open::CreateResult;
use smbscope_tables::operation::Operation;

/// A row whose texts are not yet numbers in a batch's pools.
#[derive(Clone, Debug)]
pub struct Row {
    /// The columns.
    pub operation: Operation,
    /// File or directory, relative to the share.
    pub path: Option<Arc<str>>,
    /// What all rows of a connection have in common.
    pub link: Arc<LinkNames>,
    /// What a Create or Close says about its open and no column holds.
    pub told: Option<Box<CreateResult>>,
    /// How long its reply waited in this machine before the client read it, ns. The row's times are those of the
    /// reply's arrival. None where the kernel has no time stamps.
    pub read_late_ns: Option<i64>,
}

/// The form in which a builder of batches takes it.
impl AsRef<Operation> for Box<Row> {
    fn as_ref(&self) -> &Operation {
        &self.operation
    }
}

/// The texts of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkNames {
    /// The client's address.
    pub client: String,
    /// The server's address.
    pub server: String,
    /// `DOMAIN\user`.
    pub user: String,
    /// `\\server\share`; empty before the tree connect.
    pub share: String,
}
