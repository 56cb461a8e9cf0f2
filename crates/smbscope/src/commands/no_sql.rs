//! What `smbscope query` and `smbscope ops --where` answer in a build without the feature `sql`.

use crate::cli::Query;
use crate::exit::{Code, Failure};
use crate::options::Verbosity;

/// Fails: there is no SQL engine in this build.
pub fn run(_args: &Query, _talk: Verbosity) -> anyhow::Result<()> {
    Err(error("smbscope query"))
}

/// Says that `what` needs SQL, and how to get it.
pub fn error(what: &str) -> anyhow::Error {
    let message = super::left_out(&format!("{what}: this build has no SQL"))
        + ", or query the Parquet files of a dataset (smbscope import) with DuckDB, pandas or Spark";
    Failure::new(Code::Query, message).into()
}
