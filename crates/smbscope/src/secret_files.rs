//! Files with secrets of accounts and services, from which the keys of encrypted sessions are computed.
//!
//! Secrets are in files only, because command lines are visible to other users. Owns the options, reading
//! the files, and the warning about files that other users can read, as ssh gives it. The formats are
//! `smbscope_wire::secrets`. The contents are wiped from memory, and no message repeats them.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use smbscope_wire::secrets::Secrets;
use zeroize::Zeroizing;

use crate::exit::{Code, Failure};
use crate::output;

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Secrets from which keys are computed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input options")]
pub struct SecretFiles {
    /// Decrypt the sessions of the accounts in this file, if the capture shows their logon by NTLM. A
    /// line is NAME:PASSWORD, for example `EXAMPLE\alice:secret`, where NAME is `user`,
    /// `DOMAIN\user`, `user@domain`, or `*` for every account. Everything behind the first colon is
    /// the password. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub password_file: Vec<PathBuf>,
    /// As --password-file, with NT hashes of 32 hexadecimal digits: a line is NAME:HASH, HASH alone for
    /// every account, or NAME:RID:LM:NT::: as pwdump and secretsdump write it.
    #[arg(long, value_name = "FILE")]
    pub nt_hash_file: Vec<PathBuf>,
    /// Decrypt the sessions whose Kerberos tickets are for a service in this keytab: that of the file
    /// server's account. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub keytab: Vec<PathBuf>,
}

impl SecretFiles {
    /// Reads all files.
    pub fn read(&self) -> anyhow::Result<Secrets> {
        let mut secrets = Secrets::default();
        for path in &self.password_file {
            let added = secrets.add_passwords(&contents(path)?);
            added.map_err(|error| wrong(path, &error))?;
        }
        for path in &self.nt_hash_file {
            let added = secrets.add_nt_hashes(&contents(path)?);
            added.map_err(|error| wrong(path, &error))?;
        }
        for path in &self.keytab {
            let added =
                secrets.add_keytab(&contents(path)?).map_err(|error| wrong(path, &error))?;
            if added == 0 {
                return Err(wrong(
                    path,
                    &"it has no key of a supported encryption type (aes-cts-hmac-sha1-96, aes-cts-hmac-sha2, rc4-hmac)",
                ));
            }
        }
        Ok(secrets)
    }
}

fn wrong(path: &Path, problem: &dyn std::fmt::Display) -> anyhow::Error {
    Failure::usage(format!("{}: {problem}", path.display()))
}

/// The bytes of a file, wiped when they are dropped.
fn contents(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let shown = path.display();
    let unreadable = || Failure::new(Code::Input, format!("{shown}: cannot read the file"));
    #[cfg(target_os = "linux")]
    crate::capabilities::keep_memory_private();
    let file = std::fs::File::open(path).with_context(unreadable)?;
    let metadata = file.metadata().with_context(unreadable)?;
    if is_open_to_others(path, &metadata) {
        let remedy = if cfg!(windows) {
            "icacls FILE /inheritance:r /grant:r \"%USERNAME%:R\""
        } else {
            "chmod 600 FILE"
        };
        output::say(&format!(
            "warning: {shown}: other users of this machine can read the secrets in this file; use `{remedy}`"
        ));
    }
    // All at once, so that no copies of parts remain in memory.
    let room = usize::try_from(metadata.len().min(FILE_BYTES_MAX)).unwrap_or(0) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(path, &"it is larger than 64 MiB"));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_open_to_others(_path: &Path, metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // Not a pipe, such as the one of a shell's process substitution.
    metadata.is_file() && metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(path: &Path, metadata: &std::fs::Metadata) -> bool {
    metadata.is_file() && crate::windows::is_open_to_others(path)
}
