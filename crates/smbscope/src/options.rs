//! Options shared by several commands, and what they produce: opened inputs, keys, tokens for
//! names. Files of secrets are `secret_files`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use smbscope_capture as capture;
use smbscope_store::Symbols;
use smbscope_store::source::{OpenOptions, Source};
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::column::Sensitivity;
use smbscope_tables::quantity::{parse_duration, parse_size};
use smbscope_wire::crypto::{KeyEntry, parse_key, parse_key_list};

use crate::exit::{Code, Failure};
use crate::output;
use crate::secret_files::SecretFiles;
use crate::settings;
use crate::terminal::Color;
use crate::windows;

/// Inputs and how they are read.
#[derive(Debug, Args)]
pub struct Decode {
    /// Capture files, CPU traces, datasets, or `-` for a capture on standard input.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<String>,
    /// How the inputs are read.
    #[command(flatten)]
    pub reading: Reading,
}

/// How inputs are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input options")]
pub struct Reading {
    /// Decrypt with the keys in this file, in the format of Wireshark's smb2_seskey_list: session
    /// ID, then the session key or one key for each direction.
    #[arg(long, value_name = "FILE", env = "SMBSCOPE_KEYS", hide_env_values = true)]
    pub keys: Option<PathBuf>,
    /// Decrypt with this key, written like a line of a --keys file. Prefer --keys: command lines
    /// are visible to other users of this machine and stay in the shell's history.
    #[arg(long = "key", value_name = "ID,KEY")]
    pub key: Vec<String>,
    /// Secrets from which keys are computed.
    #[command(flatten)]
    pub secrets: SecretFiles,
    /// Name functions in CPU traces by the PDB files in this folder (a symbol store, or
    /// the files themselves), by its ELF files by build id (~/.debug, /usr/lib/debug), or by this
    /// copy of /proc/kallsyms. Can be repeated.
    #[arg(long, value_name = "DIR|FILE")]
    pub symbols: Vec<PathBuf>,
    /// Number of decoding threads; 0 uses one per CPU.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Memory for the sessions, trees and opens of a capture and their names. Beyond it the oldest
    /// are forgotten, which the report says.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = state_size)]
    pub memory: u64,
}

/// Replacement of names by tokens.
#[derive(Debug, Args)]
#[command(next_help_heading = "Privacy options")]
pub struct Anonymize {
    /// Replace the names of people, machines and paths with tokens. The same name always gets the
    /// same token.
    #[arg(long)]
    pub anonymize: bool,
    /// Derive the tokens from the key in this file (64 hexadecimal digits), so that they are the
    /// same in every run. Without this option the key is random and discarded.
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    pub anonymize_key: Option<PathBuf>,
}

/// What is written to standard error in addition to the result, and colour.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Verbosity {
    /// Write only errors to standard error.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Do not show progress. Progress is shown only if standard error is a terminal.
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Replace output files that exist already.
    #[arg(long, global = true)]
    pub force: bool,
    /// When to use colour.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: Color,
}

impl Verbosity {
    /// Writes a line to standard error unless `--quiet` is given.
    pub fn say(&self, line: &str) {
        output::say(line);
    }
}

impl Reading {
    /// Opens `inputs`. With a tokenizer, names are replaced while they are read.
    pub fn open(&self, inputs: &[String], tokenizer: Option<Tokenizer>) -> anyhow::Result<Source> {
        if inputs.iter().filter(|input| *input == "-").count() > 1 {
            return Err(Failure::usage("`-` (standard input) can be given once only"));
        }
        let inputs: Vec<_> = inputs.iter().map(|input| settings::get().input(input)).collect();
        let mut seen = HashMap::new();
        for input in &inputs {
            windows::check_name(Path::new(input))?;
            // A missing input is reported when it is opened.
            let Ok(path) = std::fs::canonicalize(input) else { continue };
            if let Some(first) = seen.insert(path, input) {
                return Err(Failure::usage(format!(
                    "{input}: is given twice (first as {first}); its operations would be counted twice"
                )));
            }
        }
        let decode = capture::Options {
            keys: self.keys()?,
            secrets: Arc::new(self.secrets.read()?),
            threads: self.threads,
            limits: capture::Limits {
                state_bytes: usize::try_from(self.memory).unwrap_or(usize::MAX),
                ..capture::Limits::default()
            },
            ..capture::Options::default()
        };
        let symbols = Symbols::open(&self.symbols).map_err(smbscope_store::Error::from)?;
        Ok(Source::open(&inputs, OpenOptions { decode, tokenizer, symbols })?)
    }

    fn keys(&self) -> anyhow::Result<Vec<KeyEntry>> {
        let mut entries = Vec::new();
        for key in &self.key {
            let entry =
                parse_key(key).map_err(|error| Failure::usage(format!("--key: {error}")))?;
            entries.push(entry);
        }
        if let Some(path) = &self.keys {
            let text = read_text(path)?;
            let more = parse_key_list(&text)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            entries.extend(more);
        }
        Ok(entries)
    }
}

impl Anonymize {
    /// The tokenizer, if names must be replaced.
    pub fn tokenizer(&self) -> anyhow::Result<Option<Tokenizer>> {
        match &self.anonymize_key {
            _ if !self.anonymize => Ok(None),
            Some(path) => {
                let text = read_text(path)?;
                let key = parse_hex_key(text.trim()).ok_or_else(|| {
                    Failure::usage(format!(
                        "{}: not a key of 64 hexadecimal digits; create one with `openssl rand -hex 32`",
                        path.display()
                    ))
                })?;
                Ok(Some(Tokenizer::new(key)))
            }
            None => {
                Ok(Some(Tokenizer::random().context("cannot create a random key for --anonymize")?))
            }
        }
    }
}

/// The name of an input, or its token.
pub fn input_name(input: &str, tokenizer: Option<&Tokenizer>) -> String {
    match tokenizer {
        Some(tokenizer) => tokenizer.text("recording", Sensitivity::Machine, input),
        None => input.to_owned(),
    }
}

/// Reads a small file that an option names.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| {
        Failure::new(Code::Input, format!("{}: cannot read the file", path.display()))
    })
}

/// Parses a number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err("must be above zero".into()) }
}

/// Parses a percentage, 0 to 100.
pub fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=100.0).contains(&number) { Ok(number) } else { Err("must be 0 to 100".into()) }
}

/// Parses a duration: 60s, 10m, 250ms.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}

/// Parses a size in bytes: 4096, 64KiB.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// Parses the size of the decoder's state: below 1 MiB a few names would fill it.
fn state_size(text: &str) -> Result<u64, String> {
    size(text).and_then(|bytes| match bytes {
        0x10_0000.. => Ok(bytes),
        _ => Err("must be at least 1MiB".to_owned()),
    })
}

fn parse_hex_key(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in key.iter_mut().enumerate() {
        let digits = text.get(place * 2..place * 2 + 2)?;
        // from_str_radix accepts a sign.
        *byte = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoder_gets_at_least_a_mebibyte() {
        assert_eq!(state_size("1MiB"), Ok(1 << 20));
        assert!(state_size("1023KiB").is_err());
        assert!(state_size("0").is_err());
    }

    #[test]
    fn keys_of_tokens_are_32_bytes_in_hexadecimal() {
        let key = parse_hex_key(&"0f".repeat(32)).unwrap();
        assert_eq!(key, [15; 32]);
        assert!(parse_hex_key(&"0f".repeat(31)).is_none());
        assert!(parse_hex_key(&"+f".repeat(32)).is_none());
        assert!(parse_hex_key(&"gg".repeat(32)).is_none());
    }
}
