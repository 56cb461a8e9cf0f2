//! A namespace written in a form: exports, directory objects, PowerShell, links of Samba.
//!
//! Owns what happens to things that a form cannot express: they are listed, and writing stops unless the caller allows
//! it. [`express`] reduces a namespace to what the form holds; reading what was written gives exactly that. Each form has
//! one file below.

use serde::Serialize;

use super::form::Form;
use super::model::Namespace;

mod blob;
mod directory;
mod export;
mod express;
mod loss;
mod msdfs;
mod objects;
mod others;
mod script;
#[cfg(test)]
pub(super) mod tests;

pub use blob::{link_bytes, namespace_bytes};
pub use express::express;
pub use loss::{Loss, Losses, Lost};
pub use msdfs::{link_text, links};

/// What may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Everything.
    pub all: bool,
    pub some: Vec<Lost>,
}

impl Allowed {
    /// Whether a loss does not stop the writing.
    pub fn has(&self, lost: Lost) -> bool {
        self.all || self.some.contains(&lost)
    }
}

/// A file of a written namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrittenFile {
    pub name: String,
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// A written namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    pub form: Form,
    /// The first one is the form itself; others belong to it (Samba's script and `smb.conf`).
    pub files: Vec<WrittenFile>,
    /// What was lost and allowed to be.
    pub losses: Vec<Loss>,
}

/// Why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Refusal {
    /// The form is only read.
    NotWritten(Form),
    /// The namespace has things that the form cannot express; those that are not allowed to be lost.
    Losses(Form, Vec<Loss>),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NotWritten(form) => {
                write!(formatter, "{} is only read; it cannot be written", form.title())
            }
            Refusal::Losses(form, losses) => {
                write!(formatter, "{} cannot express:", form.title())?;
                for loss in losses {
                    write!(formatter, "\n  {loss}")?;
                }
                write!(formatter, "\nallow each of them by its name, or choose another form")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Writes a namespace. What the form cannot express stops it unless `allowed` has it.
pub fn write(namespace: &Namespace, form: Form, allowed: &Allowed) -> Result<Written, Refusal> {
    if form == Form::View {
        return Err(Refusal::NotWritten(form));
    }
    let (expressed, losses) = express(namespace, form);
    let (kept, refused): (Vec<Loss>, Vec<Loss>) =
        losses.into_iter().partition(|loss| allowed.has(loss.lost));
    if !refused.is_empty() {
        return Err(Refusal::Losses(form, refused));
    }
    let name = file_name(&expressed.name);
    let one = |ending: &str, bytes: Vec<u8>| {
        vec![WrittenFile { name: format!("{name}.{ending}"), bytes }]
    };
    let files = match form {
        Form::Export2003 => one("xml", export::write(&expressed, true).into_bytes()),
        Form::Export2008 => one("xml", export::write(&expressed, false).into_bytes()),
        Form::DirectoryV1 => one("ldif", directory::write_v1(&expressed).into_bytes()),
        Form::DirectoryV2 => one("ldif", directory::write_v2(&expressed).into_bytes()),
        Form::Objects => one("json", objects::write(&expressed).into_bytes()),
        Form::Script => one("ps1", script::write(&expressed)),
        Form::Msdfs => msdfs::write(&expressed, &name),
        Form::View => Vec::new(),
    };
    Ok(Written { form, files, losses: kept })
}

/// A namespace's name as a file's name.
fn file_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | ' ') { c } else { '_' })
        .collect();
    let name = name.trim().to_owned();
    if name.is_empty() { "namespace".to_owned() } else { name }
}
