//! Finds where a function begins in a library, and how expensive a probe is there.
//!
//! A probe is cheap if the kernel can emulate the instruction that it replaces (push, nop, jmp); others
//! are executed in single step, ten times as expensive (measured: docs/method/server-slices.md).

use std::fs;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Object as _, ObjectSymbol as _};

/// A function in a library's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its offset in the file, bytes.
    pub offset: u64,
    /// Its first instruction.
    pub first: [u8; 4],
}

/// A library cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the symbols of {path}: {reason}")]
pub struct SymbolError {
    /// The library.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// A library's functions.
pub struct Symbols {
    bytes: Vec<u8>,
    path: PathBuf,
}

impl Symbols {
    /// Reads the library.
    pub fn read(path: &Path) -> Result<Symbols, SymbolError> {
        let bytes = fs::read(path).map_err(|error| wrong(path, &error))?;
        Ok(Symbols { bytes, path: path.to_owned() })
    }

    /// Finds exported functions, in the order of the names; `None` for a missing one.
    pub fn find(&self, names: &[&str]) -> Result<Vec<Option<Function>>, SymbolError> {
        let path = &self.path;
        let file: ElfFile64<'_, object::Endianness> =
            ElfFile64::parse(self.bytes.as_slice()).map_err(|error| wrong(path, &error))?;
        let endian = file.endian();
        let headers = file.elf_header();
        let headers = headers
            .program_headers(endian, self.bytes.as_slice())
            .map_err(|error| wrong(path, &error))?;
        let place = |address: u64| {
            headers.iter().find_map(|header| {
                let start = header.p_vaddr(endian);
                let inside = header.p_type(endian) == object::elf::PT_LOAD
                    && (start..start + header.p_filesz(endian)).contains(&address);
                inside.then(|| address - start + header.p_offset(endian))
            })
        };
        let mut found = vec![None; names.len()];
        for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
            let Ok(name) = symbol.name() else { continue };
            let Some(index) = names.iter().position(|wanted| *wanted == name) else { continue };
            let Some(offset) = place(symbol.address()) else { continue };
            let first = self.bytes.get(offset as usize..).and_then(|rest| rest.first_chunk());
            if let (Some(first), Some(slot)) = (first, found.get_mut(index)) {
                *slot = Some(Function { offset, first: *first });
            }
        }
        Ok(found)
    }
}

impl Function {
    /// Whether a probe at its first instruction is cheap on this CPU (x86-64: push, nop, endbr64, jmp).
    pub fn is_cheap(&self) -> bool {
        matches!(
            self.first,
            [0x50..=0x57 | 0xe9 | 0xeb | 0x90, ..]
                | [0x41, 0x50..=0x57, ..]
                | [0xf3, 0x0f, 0x1e, 0xfa]
                | [0x66, 0x90, ..]
                | [0x0f, 0x1f, ..]
        )
    }
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> SymbolError {
    SymbolError { path: path.to_owned(), reason: error.to_string() }
}
