//! Symbol stores: which file is found, and what a trace's rows get from it.

use super::builder::{KEY, Pdb, msf, msfz};
use super::two_functions;
use ms_pdb_msfz::Compression;
use smbscope_tables::Part;
use smbscope_tables::tables::{Interrupt, Sample, StackFrame, Trace};
use smbscope_trace::symbols::{Found, Functions, Identity, Symbols, pdb_functions};
use smbscope_trace::{Format, Reader};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces")
}

fn put(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn found(dir: &Path, key: &str) -> Option<Arc<Functions>> {
    match Symbols::open(&[dir.to_owned()]).unwrap().file(key) {
        Found::Yes(functions) => Some(functions),
        _ => None,
    }
}

#[test]
fn files_are_found_in_each_layout() {
    let bytes = msf(&two_functions().streams());
    let lower = KEY.to_lowercase();
    for place in [
        "ndis.pdb".to_owned(),
        "NDIS.PDB".to_owned(),
        format!("ndis.pdb/{KEY}/ndis.pdb"),
        format!("Ndis.pdb/{lower}/ndis.PDB"),
        format!("ndis.pdb/{KEY}/msfz0/ndis.pdb"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join(&place), &bytes);
        let all = found(dir.path(), &format!("ndis.pdb/{KEY}"));
        assert_eq!(all.unwrap().find(0x100), Some("First"), "{place}");
        assert!(found(dir.path(), &format!("tcpip.pdb/{KEY}")).is_none());
        assert!(found(dir.path(), &format!("ndis.pdb/{}", KEY.replace('0', "1"))).is_none());
    }
}

#[test]
fn a_name_leads_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("secret.pdb"), &msf(&two_functions().streams()));
    std::fs::create_dir(dir.path().join("store")).unwrap();
    let store = dir.path().join("store");
    for name in ["../secret.pdb", "..", ".", "", "/etc/passwd"] {
        assert!(found(&store, &format!("{name}/{KEY}")).is_none(), "{name}");
    }
    assert!(found(dir.path(), &format!("secret.pdb/{KEY}")).is_some());
}

#[test]
fn a_damaged_file_is_counted_and_another_one_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = msf(&two_functions().streams());
    let place = dir.path().join(format!("ndis.pdb/{KEY}"));
    put(&place.join("ndis.pdb"), &bytes[..700]);
    let symbols = Symbols::open(&[dir.path().to_owned()]).unwrap();
    let Found::Damaged(what) = symbols.file(&format!("ndis.pdb/{KEY}")) else { panic!() };
    assert!(what.ends_with("ndis.pdb: it is cut off"), "{what}");
    put(&place.join("msfz0/ndis.pdb"), &msfz(&two_functions().streams(), Compression::Zstd));
    assert!(found(dir.path(), &format!("ndis.pdb/{KEY}")).is_some());
    let (_, _, _, trace) = rows(&[dir.path().to_owned()]);
    assert_eq!((trace.symbol_files, trace.symbol_files_damaged), (1, 0));
    std::fs::remove_dir_all(place.join("msfz0")).unwrap();
    let (_, _, _, trace) = rows(&[dir.path().to_owned()]);
    assert_eq!((trace.symbol_files, trace.symbol_files_damaged), (0, 1));
    assert!(trace.first_symbol_file_damaged.unwrap().contains("ndis.pdb"));
}

#[test]
fn texts_of_kallsyms_are_told_from_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kallsyms");
    let open =
        || Symbols::open(std::slice::from_ref(&path)).map(|symbols| symbols.kernel().is_some());
    assert!(open().is_err(), "it does not exist");
    for (text, error) in [
        ("ffffffff81000000 T _stext\n", None),
        ("0000000000000000 T _stext\n", Some("only root sees them")),
        ("nonsense\n", Some("neither a folder with PDB or ELF files nor text of /proc/kallsyms")),
    ] {
        std::fs::write(&path, text).unwrap();
        match error {
            None => assert!(open().unwrap()),
            Some(error) => assert!(open().unwrap_err().to_string().contains(error)),
        }
    }
    let twice = [path.clone(), path.clone()];
    std::fs::write(&path, "ffffffff81000000 T _stext\n").unwrap();
    assert!(Symbols::open(&twice).is_err());
}

fn rows(symbols: &[PathBuf]) -> (Vec<Interrupt>, Vec<Sample>, Vec<StackFrame>, Trace) {
    let symbols = Symbols::open(symbols).unwrap();
    let path = traces().join("flood.etl");
    let mut reader = Reader::open(&path, Format::Etl, &symbols, 1_000).unwrap();
    let (mut interrupts, mut samples, mut frames, mut trace) =
        (Vec::new(), Vec::new(), Vec::new(), Trace::default());
    while let Some(part) = reader.next_part().unwrap() {
        match part {
            Part::Interrupts(batch) => interrupts.extend(Interrupt::from_batch(&batch)),
            Part::Samples(batch) => samples.extend(Sample::from_batch(&batch)),
            Part::Stacks(batch) => frames.extend(StackFrame::from_batch(&batch)),
            Part::Traces(mut rows) => trace = rows.remove(0),
            _ => {}
        }
    }
    (interrupts, samples, frames, trace)
}

/// The store that tests of commands use, for `flood.etl`. It lacks the PDB file of the kernel.
fn flood_store() -> [(String, Vec<u8>); 2] {
    let ndis = Pdb {
        symbols: vec![(1, 0x80, "ndisInterruptDpc"), (1, 0x400, "NdisMIndicateReceive")],
        ..Pdb::default()
    };
    let nic = Pdb {
        symbols: vec![(1, 0x40, "NicInterrupt"), (1, 0x800, "NicReceive"), (1, 0x900, "NicEnd")],
        ..Pdb::default()
    };
    let nic = msfz(&nic.streams(), Compression::Zstd);
    [
        (format!("ndis.pdb/{KEY}/ndis.pdb"), msf(&ndis.streams())),
        (format!("nic.pdb/{KEY}/msfz0/nic.pdb"), nic),
    ]
}

/// `SMBSCOPE_BLESS=1 cargo test -p smbscope-trace --test symbols` writes the store again.
#[test]
fn routines_stacks_and_samples_get_functions_from_the_store() {
    let store = traces().join("symbols");
    for (path, made) in flood_store() {
        let path = store.join(path);
        if std::env::var_os("SMBSCOPE_BLESS").is_some() {
            put(&path, &made);
        }
        assert!(std::fs::read(&path).unwrap() == made, "{} is what is made", path.display());
    }
    let (interrupts, samples, frames, trace) = rows(&[store]);
    for one in &interrupts {
        let expected = match one.name.as_deref() {
            Some("ndis.sys") => Some("ndisInterruptDpc"),
            Some("nic.sys") => Some("NicInterrupt"),
            _ => None,
        };
        assert_eq!(one.function.as_deref(), expected);
        assert!(one.routine_offset.is_some());
    }
    let first: Vec<_> = frames.iter().take(3).map(|frame| frame.function.as_deref()).collect();
    // The second frame is a return address: the call is before the function that begins there.
    assert_eq!(first, [Some("ndisInterruptDpc"), Some("NicReceive"), None]);
    let named = samples.iter().filter(|sample| sample.function.is_some()).count();
    assert_eq!((named, samples.len()), (10, 20));
    assert_eq!((trace.symbol_files, trace.symbol_files_damaged), (2, 0));

    let (interrupts, _, frames, trace) = rows(&[]);
    assert!(interrupts.iter().all(|one| one.function.is_none() && one.routine_offset.is_some()));
    assert!(frames.iter().all(|frame| frame.function.is_none() && frame.module.is_some()));
    assert_eq!(trace.symbol_files, 0);
}

/// A PDB file that lld-link made (`tests/traces/symbols/make.sh`). The truth is what
/// `llvm-pdbutil dump -publics -section-headers` says.
#[test]
fn a_file_of_another_linker_has_its_public_functions() {
    let stored = std::fs::read(traces().join("symbols/driver.pdb")).unwrap();
    let wanted = Identity::parse("D6FBE6CBE0C866064C4C44205044422E1").unwrap();
    let all = pdb_functions(Cursor::new(&stored), &wanted).unwrap().unwrap();
    let found = [0x1000, 0x1010, 0x1050, 0x1064, 0x1065, 0x3000].map(|address| all.find(address));
    let (receive, poll, entry) = (Some("receive"), Some("poll_queue"), Some("DriverEntry"));
    assert_eq!(found, [receive, poll, entry, entry, None, None]);
}

/// Two samples of `perf script` that could not see the kernel's symbols.
const WITHOUT_SYMBOLS: &str = "\
swapper     0 [000]    10.000100:   10101010 cpu-clock:ppp: 
\tffffffff81000044 [unknown] ([kernel.kallsyms])
\tffffffffc0300000 [unknown] ([unknown])
\t    7f0000001234 [unknown] (/usr/bin/program)

swapper     0 [000]    10.000300:   10101010 cpu-clock:ppp: 
\tffffffff81e01001 [unknown] ([kernel.kallsyms])
\tffffffff81e02010 [unknown] ([kernel.kallsyms])

";

const KALLSYMS: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000040 t poll_idle
ffffffff81e01000 D data
ffffffff81e02000 T handle_softirqs
ffffffffc0200000 t receive\t[nic]
ffffffffc0300000 t next\t[nic]
";

#[test]
fn addresses_of_linux_get_functions_of_kallsyms_and_those_of_windows_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let (path, kernel) = (dir.path().join("trace.txt"), dir.path().join("kallsyms"));
    std::fs::write(&path, WITHOUT_SYMBOLS).unwrap();
    std::fs::write(&kernel, KALLSYMS).unwrap();
    let symbols = Symbols::open(std::slice::from_ref(&kernel)).unwrap();
    let mut reader = Reader::open(&path, Format::LinuxText, &symbols, 1_000).unwrap();
    let (mut samples, mut frames) = (Vec::new(), Vec::new());
    while let Some(part) = reader.next_part().unwrap() {
        match part {
            Part::Samples(batch) => samples.extend(Sample::from_batch(&batch)),
            Part::Stacks(batch) => frames.extend(StackFrame::from_batch(&batch)),
            _ => {}
        }
    }
    let names = |frame: &StackFrame| {
        let name = |name: &Option<Arc<str>>| name.as_deref().unwrap_or("-").to_owned();
        (name(&frame.function), name(&frame.module))
    };
    let pair = |function: &str, module: &str| (function.to_owned(), module.to_owned());
    let found: Vec<_> = frames.iter().map(names).collect();
    let expected = [
        pair("poll_idle", "[kernel.kallsyms]"),
        // A return address: the call is in the function before.
        pair("receive", "[nic]"),
        pair("-", "/usr/bin/program"),
        pair("-", "[kernel.kallsyms]"),
        pair("handle_softirqs", "[kernel.kallsyms]"),
    ];
    assert_eq!(found, expected);
    let functions: Vec<_> = samples.iter().map(|sample| sample.function.as_deref()).collect();
    assert_eq!(functions, [Some("poll_idle"), None]);
    let during: Vec<_> = samples.iter().map(|sample| sample.during.as_deref()).collect();
    assert_eq!(during, [None, Some("softirq")]);

    let (_, _, frames, trace) = rows(&[kernel]);
    assert!(frames.iter().all(|frame| frame.function.is_none()));
    assert_eq!(trace.symbol_files, 0);
}
