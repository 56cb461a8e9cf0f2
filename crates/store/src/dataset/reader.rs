//! Finds and reads the parts of a run folder, and single Parquet files of smbscope.
//!
//! The manifest is optional: after a kill it may not list the newest parts. A part that it lists and
//! that is missing is an error, because rows were lost.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaData;
use smbscope_tables::SCHEMA_VERSION;
use smbscope_tables::manifest::{FILE_NAME, Kind, Manifest, ManifestError};

use super::UNFINISHED;
use super::pieces::is_piece_of_present;
use super::properties::{SCHEMA_VERSION_KEY, TABLE_KEY};
use crate::Table;
use crate::error::{Error, Result};

/// Bytes of a manifest: more than a year of recording has.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// Bytes of one column in one row group, as its footer states them: far more than the writer makes.
const COLUMN_BYTES_MAX: i64 = 512 << 20;
/// Bytes of all columns in one row group, likewise.
const GROUP_BYTES_MAX: i64 = 1 << 30;

/// A run folder that can be read.
#[derive(Clone, Debug)]
pub struct Dataset {
    dir: PathBuf,
    manifest: Option<Manifest>,
    parts: BTreeMap<Table, Vec<PathBuf>>,
    /// Rows of the parts that the manifest lists.
    listed: BTreeMap<PathBuf, u64>,
}

impl Dataset {
    /// Whether there is a run folder at `dir`, of any version.
    pub fn is_at(dir: &Path) -> bool {
        let named = read_manifest(&dir.join(FILE_NAME))
            .map(|bytes| Manifest::from_json(&bytes))
            .is_ok_and(|read| matches!(read, Ok(_) | Err(ManifestError::Newer { .. })));
        named
            || Table::ALL.iter().any(|&table| {
                let parts = list(dir, table).unwrap_or_default();
                parts.iter().any(|part| FileInfo::from_path(part).is_ok())
            })
    }

    /// Opens the run folder at `dir`.
    pub fn open(dir: &Path) -> Result<Dataset> {
        if !dir.exists() {
            return Err(Error::NotFound(dir.to_owned()));
        }
        let path = dir.join(FILE_NAME);
        let manifest = match read_manifest(&path) {
            Ok(bytes) => {
                let read = Manifest::from_json(&bytes);
                Some(read.map_err(|error| Error::Manifest { path: path.clone(), error })?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(&path)(error)),
        };
        let mut parts = BTreeMap::new();
        for table in Table::ALL {
            parts.insert(table, list(dir, table)?);
        }
        if manifest.is_none() {
            let first = parts.values().flatten().next();
            let first = first.ok_or_else(|| Error::NotRecognised {
                path: dir.to_owned(),
                what: "the folder contains no dataset (no manifest.json and no Parquet files of smbscope), and no captures or traces".into(),
            })?;
            FileInfo::from_path(first)?;
        }
        let files = manifest.iter().flat_map(|manifest| manifest.tables.values().flatten());
        let listed = files.map(|part| (dir.join(&part.file), part.rows)).collect();
        let dataset = Dataset { dir: dir.to_owned(), manifest, parts, listed };
        dataset.check()?;
        Ok(dataset)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its manifest, when there is one.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Whether the writer finished.
    pub fn is_complete(&self) -> bool {
        self.manifest.as_ref().is_some_and(|it| it.complete)
    }

    /// What a reader must know of a recording or an import that was not finished; `None` if it was, or if its load run says so
    /// itself.
    pub fn unfinished(&self) -> Option<String> {
        let manifest = self.manifest.as_ref()?;
        let by_itself = !matches!(manifest.kind, Kind::Load | Kind::Net);
        (by_itself && !manifest.complete).then(|| {
            let last = if manifest.kind == Kind::Record { "a second" } else { "10 s" };
            format!(
                "it was not finished (it is still written, or its writer was ended): up to {last} before its end, and everything that is known only at the end, may be missing"
            )
        })
    }

    /// Rows of a part according to the manifest.
    pub fn rows_of(&self, part: &Path) -> Option<u64> {
        self.listed.get(part).copied()
    }

    /// Whether an older version of the schemas has other names or types of columns than this one.
    pub fn is_old(&self) -> bool {
        match &self.manifest {
            Some(manifest) => manifest.schema_version < SCHEMA_VERSION,
            None => self.parts.values().flatten().any(|part| {
                FileInfo::from_path(part).is_ok_and(|info| info.version < SCHEMA_VERSION)
            }),
        }
    }

    /// The files of a table, in the order in which they were written.
    pub fn parts(&self, table: Table) -> &[PathBuf] {
        self.parts.get(&table).map_or(&[], Vec::as_slice)
    }

    /// Deletes a dataset's own files in `dir`, the manifest first.
    pub(super) fn remove(dir: &Path) -> Result<()> {
        let remove = |path: &Path| match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(path)(error))
            }
            _ => Ok(()),
        };
        let manifest = dir.join(FILE_NAME);
        remove(&manifest)?;
        remove(&manifest.with_extension(UNFINISHED))?;
        for table in Table::ALL {
            let folder = dir.join(table.name());
            // What a link leads to is not this dataset's.
            if std::fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_symlink()) {
                remove(&folder)?;
                continue;
            }
            for part in entries(&folder)? {
                let extension = part.extension();
                if extension.is_some_and(|end| end == "parquet" || end == UNFINISHED) {
                    remove(&part)?;
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let Some(manifest) = &self.manifest else {
            return Ok(());
        };
        for part in manifest.tables.values().flatten() {
            let path = self.dir.join(&part.file);
            let mut steps = Path::new(&part.file).components();
            if !steps.all(|step| matches!(step, std::path::Component::Normal(_))) {
                let what = format!("it lists {}, which is not in the folder", part.file);
                return Err(Error::NotRecognised { path: self.dir.join(FILE_NAME), what });
            }
            if !path.is_file() {
                return Err(Error::NotRecognised {
                    path,
                    what: "the manifest lists this file, but it is missing: the dataset is damaged"
                        .into(),
                });
            }
        }
        Ok(())
    }
}

/// Metadata of a Parquet file of smbscope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its table.
    pub table: Table,
    /// Its size.
    pub size_bytes: u64,
    /// Version of the schemas.
    pub version: u32,
}

impl FileInfo {
    /// Reads the footer of the file at `path`.
    pub fn from_path(path: &Path) -> Result<FileInfo> {
        let file = open_regular(path).map_err(Error::io(path))?;
        let size_bytes = file.metadata().map_err(Error::io(path))?.len();
        let metadata = metadata(&file).map_err(Error::parquet(path))?;
        let (table, version) = table_of(path, metadata.metadata())?;
        Ok(FileInfo { table, size_bytes, version })
    }
}

/// Reads `columns` of a part of `table` (names; `None` for all), `rows` at a time. Columns that are not in the file are left
/// out. `listed`: its rows according to the manifest.
///
/// # Errors
/// The file has another table or another number of rows, or a column of a size that is never written.
pub fn read_file(
    path: &Path,
    (table, listed): (Table, Option<u64>),
    columns: Option<&[&str]>,
    rows: usize,
) -> Result<ParquetRecordBatchReader> {
    let file = open_regular(path).map_err(Error::io(path))?;
    let metadata = metadata(&file).map_err(Error::parquet(path))?;
    let damaged = |what: String| Error::NotRecognised { path: path.to_owned(), what };
    let (found, _) = table_of(path, metadata.metadata())?;
    if found != table {
        return Err(damaged(format!(
            "it holds the table {}, but belongs to {}: the dataset is damaged",
            found.name(),
            table.name()
        )));
    }
    let count = metadata.metadata().file_metadata().num_rows();
    if let Some(listed) = listed.filter(|&listed| u64::try_from(count) != Ok(listed)) {
        return Err(damaged(format!(
            "it has {count} rows, but the manifest lists {listed}: the dataset is damaged"
        )));
    }
    check_sizes(metadata.metadata()).map_err(damaged)?;
    let metadata = with_dictionaries(metadata, table).map_err(Error::parquet(path))?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let mask = match columns {
        None => ProjectionMask::all(),
        Some(columns) => {
            let places = builder.schema().fields().iter().enumerate();
            let places = places.filter(|(_, field)| columns.contains(&field.name().as_str()));
            ProjectionMask::roots(builder.parquet_schema(), places.map(|(place, _)| place))
        }
    };
    builder.with_projection(mask).with_batch_size(rows).build().map_err(Error::parquet(path))
}

/// Whether the columns of a file have sizes that smbscope writes: each is in memory as a whole.
fn check_sizes(metadata: &ParquetMetaData) -> std::result::Result<(), String> {
    for group in metadata.row_groups() {
        let sizes = || group.columns().iter().map(|column| column.uncompressed_size());
        let largest = sizes().max().unwrap_or(0);
        let all = sizes().fold(0_i64, |sum, size| sum.saturating_add(size.max(0)));
        if largest > COLUMN_BYTES_MAX || all > GROUP_BYTES_MAX {
            return Err(format!(
                "a column of {largest} bytes, and {all} bytes in one row group: smbscope writes none of that size"
            ));
        }
    }
    Ok(())
}

/// Whether a file can be read by its own Arrow schema, because this version writes the same one for `table`, and has sizes as
/// smbscope writes them. Only such a file may be read without [`read_file`].
#[cfg(feature = "sql")]
pub(crate) fn is_as_written(path: &Path, table: Table) -> bool {
    let check = || -> Option<bool> {
        let file = open_regular(path).ok()?;
        let metadata = metadata(&file).ok()?;
        let metadata = metadata.metadata();
        let (found, _) = table_of(path, metadata).ok()?;
        let notes = metadata.file_metadata().key_value_metadata()?;
        let schema = notes.iter().find(|note| note.key == parquet::arrow::ARROW_SCHEMA_META_KEY)?;
        let own = super::stored::stored_schema(&table.schema());
        // An older version may lack the columns that came later.
        let columns = metadata.file_metadata().schema_descr().root_schema().get_fields().iter();
        let columns = columns.map(|column| own.index_of(column.name()));
        let own = own.project(&columns.collect::<std::result::Result<Vec<_>, _>>().ok()?).ok()?;
        let own = parquet::arrow::encode_arrow_schema(&own);
        Some(found == table && schema.value.as_ref() == Some(&own) && check_sizes(metadata).is_ok())
    };
    check().unwrap_or(false)
}

/// Opens a file that is neither a pipe, which might never answer, nor a device, which might never end.
fn open_regular(path: &Path) -> std::io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    File::open(path)
}

fn read_manifest(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MANIFEST_BYTES_MAX {
        let limit = MANIFEST_BYTES_MAX >> 20;
        return Err(std::io::Error::other(format!("larger than {limit} MiB, so not a manifest")));
    }
    Ok(bytes)
}

/// A file's metadata. The Arrow schema that it may have is not read: it comes from anybody, and ours is known.
fn metadata(file: &File) -> parquet::errors::Result<ArrowReaderMetadata> {
    ArrowReaderMetadata::load(file, ArrowReaderOptions::new().with_skip_arrow_metadata(true))
}

/// The same file, its texts read as dictionaries where the table has dictionaries, so that a value that many rows share is
/// there once.
fn with_dictionaries(
    metadata: ArrowReaderMetadata,
    table: Table,
) -> parquet::errors::Result<ArrowReaderMetadata> {
    let own = table.schema();
    let shared = |name: &str| {
        let field = own.field_with_name(name).ok();
        field.is_some_and(|field| matches!(field.data_type(), DataType::Dictionary(..)))
    };
    let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = metadata.schema().fields().iter().map(|field| -> FieldRef {
        if field.data_type() == &DataType::Utf8 && shared(field.name()) {
            Arc::new(Field::clone(field).with_data_type(text.clone()))
        } else {
            field.clone()
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_schema(schema);
    ArrowReaderMetadata::try_new(metadata.metadata().clone(), options)
}

fn table_of(path: &Path, metadata: &ParquetMetaData) -> Result<(Table, u32)> {
    let notes = metadata.file_metadata().key_value_metadata();
    let note = |key: &str| {
        let notes = notes.into_iter().flatten();
        notes.filter(|note| note.key == key).find_map(|note| note.value.as_deref())
    };
    let version = note(SCHEMA_VERSION_KEY).and_then(|version| version.parse::<u32>().ok());
    match (note(TABLE_KEY).and_then(Table::from_name), version) {
        (_, Some(version)) if version > SCHEMA_VERSION => {
            Err(Error::Newer { path: path.to_owned(), version })
        }
        (Some(table), Some(version)) => Ok((table, version)),
        _ => Err(Error::NotRecognised {
            path: path.to_owned(),
            what: "not a Parquet file of smbscope (its metadata has no smbscope.table); smbscope reads only Parquet files that it wrote".into(),
        }),
    }
}

/// The complete parts of a table, by name.
fn list(dir: &Path, table: Table) -> Result<Vec<PathBuf>> {
    let mut parts = entries(&dir.join(table.name()))?;
    parts.retain(|path| path.extension().is_some_and(|end| end == "parquet"));
    parts.sort();
    let stale: Vec<bool> = parts.iter().map(|path| is_piece_of_present(path, &parts)).collect();
    let mut stale = stale.into_iter();
    parts.retain(|_| !stale.next().unwrap_or(false));
    Ok(parts)
}

/// The entries of a folder; none if it does not exist.
fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(dir)(error)),
    };
    entries.map(|entry| Ok(entry.map_err(Error::io(dir))?.path())).collect()
}
