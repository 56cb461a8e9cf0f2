//! Any bytes as a manifest, as a part, and as changes of good parts: whatever a folder holds is rows or an error.
#![no_main]

use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use smbscope_store::Table;
use smbscope_store::source::{OpenOptions, Request, Source};

/// Good parts, by table.
const PARTS: [(&str, &[u8]); 4] = [
    ("operations", include_bytes!("../../../tests/fixtures/findings/protection/operations/part-000000.parquet")),
    ("sessions", include_bytes!("../../../tests/fixtures/findings/protection/sessions/part-000000.parquet")),
    ("connections", include_bytes!("../../../tests/fixtures/findings/protection/connections/part-000000.parquet")),
    ("coverage", include_bytes!("../../../tests/fixtures/findings/protection/coverage/part-000000.parquet")),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let folder = folder();
    let (table, part) = PARTS[usize::from(choice >> 2) % PARTS.len()];
    let _ = std::fs::remove_file(folder.join("manifest.json"));
    let contents = match choice % 4 {
        0 => {
            write(&folder.join("manifest.json"), rest);
            part.to_vec()
        }
        1 => rest.to_vec(),
        _ => changed(part, rest),
    };
    write(&folder.join(table).join("part-000000.parquet"), &contents);
    read(&folder, table);
    std::fs::remove_file(folder.join(table).join("part-000000.parquet")).expect("it was written");
});

fn read(folder: &Path, table: &str) {
    let Ok(source) = Source::open(&[folder.display().to_string()], OpenOptions::default()) else { return };
    let request = Request { tables: Table::ALL.to_vec(), projection: None };
    let Ok(parts) = source.parts(&request) else { return };
    for part in parts {
        let Ok(part) = part else { return };
        let batch = part.to_batch().expect("rows have their table's schema");
        assert_eq!(part.table().name(), if part.table() == Table::Coverage { "coverage" } else { table });
        assert!(batch.num_rows() > 0 || batch.num_columns() > 0);
    }
}

/// Five bytes each: where, from the end or the beginning, and what is there instead.
fn changed(part: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut part = part.to_vec();
    for change in changes.chunks_exact(5) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let at = if change[2] & 1 == 0 { part.len().saturating_sub(at + 1) } else { at };
        if let Some(byte) = part.get_mut(at) {
            *byte = if change[2] & 2 == 0 { change[3] } else { *byte ^ 1 << (change[4] % 8) };
        }
    }
    part
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("the folder can be written");
}

/// In memory where the system has such a place; one per process.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = folder.join(format!("smbscope-fuzz-{}-dataset", std::process::id()));
    for (table, _) in PARTS {
        std::fs::create_dir_all(folder.join(table)).expect("the folder can be made");
    }
    folder
}
