//! Functions of an ELF file of Linux's kernel: a module (`.ko`, or what `objcopy --only-keep-debug` leaves of it), or
//! `vmlinux`.
//!
//! The file is used only if its build id is that of the trace (section `.note.gnu.build-id`). Offsets count from where the
//! kernel maps it: the section `.text` of a module, the symbol `_text` of a kernel.

use std::io::{Read, Seek};

use object::read::{ReadCache, ReadRef};
use object::{File, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use super::Unreadable;
use super::functions::{Collector, Functions, Rank};

const DAMAGED: Unreadable = Unreadable::Damaged("not a whole ELF file");

/// The functions; `None` if the file has another build id.
///
/// # Errors
///
/// Those of the operating system, and what is wrong with the file.
pub fn functions(source: impl Read + Seek, wanted: &str) -> Result<Option<Functions>, Unreadable> {
    let cache = ReadCache::new(source);
    let file = File::parse(&cache).map_err(|_| DAMAGED)?;
    let build_id = file.build_id().map_err(|_| DAMAGED)?;
    let is_wanted = build_id.is_some_and(|id| {
        let text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        text.eq_ignore_ascii_case(wanted)
    });
    if !is_wanted {
        return Ok(None);
    }
    Ok(Some(of_file(&file)))
}

fn of_file<'a, R: ReadRef<'a>>(file: &File<'a, R>) -> Functions {
    let is_module = file.kind() == ObjectKind::Relocatable;
    let text = file.section_by_name(".text").map(|section| section.index());
    let origin = if is_module {
        0
    } else {
        file.symbol_by_name("_text").map_or(0, |symbol| symbol.address())
    };
    let mut collector = Collector::default();
    for symbol in file.symbols() {
        let is_here = !is_module || symbol.section_index() == text;
        if symbol.kind() != SymbolKind::Text || !symbol.is_definition() || !is_here {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        let Some(offset) = symbol.address().checked_sub(origin) else { continue };
        let rank = if symbol.is_global() { Rank::Global } else { Rank::Local };
        collector.add(offset, rank, name);
    }
    collector.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Builds an object with a build id, as a kernel module has one; `None` without a C compiler.
    fn module(folder: &Path) -> Option<Vec<u8>> {
        let source = folder.join("m.c");
        fs::write(
            &source,
            "static __attribute__((noinline)) int inner(int a) { return a * 3; }
int outer(int a) { return inner(a) + 1; }
__attribute__((section(\".init.text\"))) int begin(void) { return outer(1); }
",
        )
        .unwrap();
        let (object, linked) = (folder.join("m.o"), folder.join("m.ko"));
        let cc = Command::new("cc").args(["-O1", "-c", "-o"]).arg(&object).arg(&source).status();
        let ld = Command::new("ld")
            .args(["-r", "--build-id=0xabcdef0123", "-o"])
            .args([&linked, &object])
            .status();
        if let Err(error) = &ld {
            smbscope_testing::skip!("no linker: {error}");
            return None;
        }
        (cc.is_ok_and(|status| status.success()) && ld.is_ok_and(|status| status.success()))
            .then(|| fs::read(&linked).unwrap())
    }

    #[test]
    fn functions_of_a_module_are_those_of_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let Some(bytes) = module(folder.path()) else { return };
        let read = |bytes: &[u8], id: &str| functions(std::io::Cursor::new(bytes), id);
        let found = read(&bytes, "ABCDEF0123").unwrap().unwrap();
        assert_eq!(found.find(0), Some("inner"));
        let all: Vec<_> = (0..64).filter_map(|offset| found.find(offset)).collect();
        assert!(all.contains(&"outer") && !all.contains(&"begin"), "{all:?}");
        assert!(read(&bytes, "abcdef0124").unwrap().is_none());
        for length in 0..bytes.len() {
            let _ = read(&bytes[..length], "abcdef0123");
        }
        assert!(matches!(read(b"#!/bin/sh", "ab"), Err(Unreadable::Damaged(_))));
    }
}
