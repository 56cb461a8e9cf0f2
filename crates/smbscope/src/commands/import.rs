//! `smbscope import`: writes inputs to a Parquet dataset that is valid at any time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use smbscope_report::format;
use smbscope_store::Table;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_store::source::{Parts, Request};
use smbscope_tables::manifest::{HIDDEN_FILTER, Kind, Manifest};

use super::dataset::{cannot, hint, rows, written};
use crate::cli::Import;
use crate::exit::{Code, Failure};
use crate::interrupt;
use crate::options::Verbosity;
use crate::pipeline::record::folder::keep_private;
use crate::progress::Shown;
use crate::settings;

/// Runs `smbscope import`.
pub fn run(args: &Import, verbosity: Verbosity) -> anyhow::Result<()> {
    let begin = Instant::now();
    let out = &out(args)?;
    // The writer replaces names, because it writes the manifest too.
    let tokenizer = args.anonymize.tokenizer()?;
    let source = args.decode.reading.open(&args.decode.inputs, None)?;
    let runs: Vec<_> = source.runs().into_iter().map(|(run, _)| run).collect();
    // What was left out of the inputs is not in the dataset either.
    let filter = source.recorded_filter().map(|filter| match tokenizer {
        Some(_) => HIDDEN_FILTER.to_owned(),
        None => filter.words,
    });
    let seed = ManifestSeed { filter, runs, ..ManifestSeed::now(Kind::Import, source.describe()) };
    let options = WriteOptions { overwrite: args.force, tokenizer, ..WriteOptions::default() };
    let parts = source.parts(&Request::all())?;
    let progress = parts.progress();
    let mut writer = DatasetWriter::create(out, seed, options).with_context(|| cannot(out))?;
    let mut shown = Shown::begin(verbosity, progress.clone());
    let read = copy(parts, &mut writer, out);
    // Also after an error: rows read before it are kept.
    let manifest = writer.finish(matches!(read, Ok(End::All)));
    shown.end();
    let end = read?;
    let manifest = manifest.with_context(|| cannot(out))?;
    let took = begin.elapsed();
    verbosity.say(&summary(out, &manifest, progress.bytes_done(), took));
    match end {
        End::All => {
            verbosity.say(&hint(out, &manifest));
            Ok(())
        }
        End::Interrupted => {
            let done = format::bytes(progress.bytes_done());
            let of = progress.bytes_total().map_or("the stream".to_owned(), format::bytes);
            let message = format!(
                "interrupted after {done} of {of}: the dataset in {} is valid and marked as incomplete",
                out.display()
            );
            Err(Failure::new(Code::Interrupted, message).into())
        }
    }
}

/// The folder to write to. The folder of a baseline is private: the user did not choose who may read it.
fn out(args: &Import) -> anyhow::Result<PathBuf> {
    if let Some(out) = &args.out {
        return Ok(out.clone());
    }
    let name = args.baseline.as_deref().unwrap_or_default();
    let folder = settings::get().baseline(name).ok_or_else(|| {
        Failure::usage(format!(
            "--baseline {name}: a name has letters, digits, `-`, `_` and `.`, and there is a home folder for it"
        ))
    })?;
    keep_private();
    std::fs::create_dir_all(&folder).with_context(|| cannot(&folder))?;
    Ok(folder)
}

/// Why copying ended.
enum End {
    All,
    Interrupted,
}

fn copy(parts: Parts, writer: &mut DatasetWriter, out: &Path) -> anyhow::Result<End> {
    for part in parts {
        writer.part(part?).with_context(|| cannot(out))?;
        if interrupt::asked() {
            return Ok(End::Interrupted);
        }
    }
    Ok(End::All)
}

fn summary(out: &Path, manifest: &Manifest, read_bytes: u64, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(1e-3);
    let operations = rows(manifest, Table::Operations);
    format!(
        "{} from {} in {seconds:.1} s ({}/s, {} operations/s)",
        written(out, manifest),
        format::bytes(read_bytes),
        format::bytes((read_bytes as f64 / seconds) as u64),
        format::count((operations as f64 / seconds) as u64),
    )
}
