//! Exit codes: the complete list, their meanings, and the code for each error.
//!
//! They are a stable interface (README, `smbscope --help`, manual pages). No other file contains
//! the numbers.

use std::io::ErrorKind;

use smbscope_capture as capture;
use smbscope_capture::file::FileError;
use smbscope_store as store;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Success; also if the reader of a pipe closed it early.
    Ok = 0,
    /// An error without a code of its own.
    Runtime = 1,
    /// The command line is wrong.
    Usage = 2,
    /// An input is neither a capture nor a trace nor a dataset.
    NotRecognised = 3,
    /// An input does not exist or cannot be read.
    Input = 4,
    /// The output exists or cannot be written.
    Output = 5,
    /// The query is wrong.
    Query = 6,
    /// `--fail-on` found something.
    Found = 7,
    /// The server stopped answering during a load run.
    ServerGone = 8,
    /// The filter options leave no operation, or not the one that `explain --why` names.
    NoMatch = 9,
    /// `durability` found that something promised durable is missing or damaged.
    NotDurable = 10,
    /// Too many scenarios of a load run failed, or users could not log on.
    LoadFailed = 11,
    /// Ended by Ctrl-C or a signal.
    Interrupted = 130,
}

impl Code {
    /// Every code with its meaning, as shown in help and manual pages.
    pub const ALL: [(Code, &'static str); 13] = [
        (Code::Ok, "success, also if the reader of a pipe closed it early"),
        (Code::Runtime, "any other error"),
        (Code::Usage, "the command line is wrong"),
        (Code::NotRecognised, "an input is neither a capture nor a trace nor a dataset"),
        (Code::Input, "an input does not exist or cannot be read"),
        (Code::Output, "the output exists already or cannot be written"),
        (Code::Query, "the SQL is wrong or could not be executed"),
        (Code::Found, "--fail-on: there is a finding of this confidence, or this state"),
        (Code::ServerGone, "load: the server stopped answering during the run"),
        (
            Code::NoMatch,
            "no operation matches the filter options (--from, --client, --path ...) or --why",
        ),
        (Code::NotDurable, "durability: a write that was promised durable is missing or damaged"),
        (
            Code::LoadFailed,
            "load: more scenarios failed than --fail-above allows, or the server refused users",
        ),
        (Code::Interrupted, "interrupted; the output written so far is valid"),
    ];
}

impl From<Code> for std::process::ExitCode {
    fn from(code: Code) -> Self {
        std::process::ExitCode::from(code as u8)
    }
}

/// An error with an exit code. Added as context to another error, it overrides the code of that
/// error.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    code: Code,
    message: String,
}

impl Failure {
    /// `message` says in one line what is wrong, where, and what to do.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// An error in the command line that clap cannot detect.
    pub fn usage(message: impl Into<String>) -> anyhow::Error {
        Failure::new(Code::Usage, message).into()
    }
}

/// The code of an error: that of the first cause in its chain that has one.
pub fn code_of(error: &anyhow::Error) -> Code {
    // anyhow finds a context by type on the error itself, but not in its chain.
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.code;
    }
    error.chain().find_map(code_of_cause).unwrap_or(Code::Runtime)
}

fn code_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Code> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.code);
    }
    if let Some(error) = cause.downcast_ref::<capture::live::Error>() {
        return Some(code_of_live(error));
    }
    #[cfg(feature = "probe")]
    if let Some(error) = cause.downcast_ref::<smbscope_samba::recording::RecordError>() {
        use smbscope_samba::recording::RecordError;
        let is_input =
            matches!(error, RecordError::Machine(_) | RecordError::Find(_) | RecordError::Load(_));
        return Some(if is_input { Code::Input } else { Code::Runtime });
    }
    #[cfg(feature = "probe")]
    if let Some(error) = cause.downcast_ref::<smbscope_trace::record::Error>() {
        use smbscope_trace::record::Error;
        let is_input = matches!(error, Error::Load(_) | Error::Tracefs(_) | Error::Both(..));
        return Some(if is_input { Code::Input } else { Code::Runtime });
    }
    let error = cause.downcast_ref::<store::Error>()?;
    Some(match error {
        store::Error::NotFound(_) => Code::Input,
        store::Error::Io { error, .. } if error.kind() == ErrorKind::BrokenPipe => Code::Ok,
        store::Error::Io { .. } => Code::Input,
        store::Error::NotRecognised { .. }
        | store::Error::Parquet { .. }
        | store::Error::Manifest { .. }
        | store::Error::Newer { .. } => Code::NotRecognised,
        store::Error::Exists { .. } => Code::Output,
        store::Error::Streams => Code::Query,
        #[cfg(feature = "sql")]
        store::Error::Sql(_) | store::Error::Query(_) => Code::Query,
        store::Error::Capture(capture::Error::File(error)) => code_of_file(error),
        _ => return None,
    })
}

fn code_of_file(error: &FileError) -> Code {
    match error {
        FileError::Empty { .. }
        | FileError::NotACapture { .. }
        | FileError::NothingInside { .. }
        | FileError::Unsupported { .. }
        | FileError::UnknownVariant { .. } => Code::NotRecognised,
        // The file does not exist, must not be read, or reading failed.
        _ => Code::Input,
    }
}

fn code_of_live(error: &capture::live::Error) -> Code {
    use capture::live::Error;
    match error {
        Error::Ports(_) => Code::Usage,
        Error::NoInterface { .. } | Error::NoPermission | Error::Down { .. } => Code::Input,
        Error::Pcap { .. } => Code::Output,
        _ => Code::Runtime,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;
    use std::path::PathBuf;

    #[test]
    fn errors_get_the_code_of_their_kind() {
        let missing = || store::Error::NotFound(PathBuf::from("x"));
        assert_eq!(code_of(&missing().into()), Code::Input);
        let error = anyhow::Error::from(missing()).context("while reading");
        assert_eq!(code_of(&error), Code::Input);
        #[cfg(feature = "sql")]
        assert_eq!(code_of(&store::Error::Sql("no".into()).into()), Code::Query);
        let empty = FileError::Empty { name: "x".into() };
        let error = store::Error::Capture(capture::Error::File(empty));
        assert_eq!(code_of(&error.into()), Code::NotRecognised);
        assert_eq!(code_of(&anyhow::anyhow!("other")), Code::Runtime);
        assert_eq!(code_of(&capture::live::Error::NoPermission.into()), Code::Input);
        assert_eq!(code_of(&Failure::usage("no")), Code::Usage);
        let outer = Err::<(), _>(missing()).context(Failure::new(Code::Output, "out"));
        assert_eq!(code_of(&outer.unwrap_err()), Code::Output);
    }

    #[test]
    fn the_table_lists_each_code_once_in_order() {
        let codes: Vec<u8> = Code::ALL.iter().map(|(code, _)| *code as u8).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 130]);
    }
}
