//! What `smbscope serve` answers in a build without the feature `serve`.

use crate::cli::Serve;
use crate::exit::{Code, Failure};
use crate::options::Verbosity;

/// Fails: there is no live page in this build.
pub fn run(_args: &Serve, _talk: Verbosity) -> anyhow::Result<()> {
    let message = super::left_out("smbscope serve: this build has no live page")
        + ", or use `smbscope report INPUT --html FILE`";
    Err(Failure::new(Code::Query, message).into())
}
