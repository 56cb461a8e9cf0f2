//! Names of persons, machines and paths as keyed tokens.
//!
//! A token is the beginning of an HMAC-SHA256 (RFC 2104) over the kind of name and the name. The same
//! name gives the same token everywhere, and a guess cannot be tested without the key. The schema
//! says which columns are sensitive ([`Sensitivity`]), so a new column cannot be missed here. Paths
//! are replaced component by component, so that depth, directories shared by
//! files and repeated names stay visible. Numbers (ports, ids, sizes, times) are left alone.

use std::net::IpAddr;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::builder::extension_of;
use crate::column::{SENSITIVITY_KEY, Sensitivity};

/// Hexadecimal digits of a person's or machine's token.
const SHORT: usize = 8;
/// Hexadecimal digits of a file name's token; a recording can have millions of names.
const LONG: usize = 12;

/// Replaces names by tokens under one key.
#[derive(Clone)]
pub struct Tokenizer {
    keyed: Hmac<Sha256>,
}

impl Tokenizer {
    /// Tokens under `key`: equal keys give equal tokens.
    pub fn new(key: [u8; 32]) -> Tokenizer {
        // HMAC pads a key that is shorter than the hash's block with zeros.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&key);
        Tokenizer { keyed: Hmac::new(&block.into()) }
    }

    /// Tokens under a random key that is not stored.
    pub fn random() -> Result<Tokenizer, std::io::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Tokenizer::new(key))
    }

    /// The batch with tokens in every column whose metadata names a sensitivity. Dictionaries are
    /// replaced by value, not by row.
    pub fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| self.column(field, column))
            .collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema, columns, &options)
    }

    /// The token of one text in column `name`.
    pub fn text(&self, name: &str, sensitivity: Sensitivity, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        match sensitivity {
            Sensitivity::Public => text.to_owned(),
            // Servers ignore case: one user is one token.
            Sensitivity::Person => self.token("user", SHORT, &text.to_lowercase()),
            Sensitivity::Machine if matches!(name, "recording" | "capture_file" | "run") => {
                self.token("recording", SHORT, text)
            }
            Sensitivity::Machine => self.machine(text),
            Sensitivity::Path => self.path(text),
            Sensitivity::Extension => self.extension(text),
        }
    }

    fn column(&self, field: &Field, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let sensitivity = field
            .metadata()
            .get(SENSITIVITY_KEY)
            .map_or(Sensitivity::Public, |word| Sensitivity::from_name(word));
        if sensitivity == Sensitivity::Public {
            return Ok(column.clone());
        }
        let replace = |texts: &StringArray| -> ArrayRef {
            // Rows of one recording lie together.
            let mut last = ("", String::new());
            Arc::new(StringArray::from_iter(texts.iter().map(|text| {
                let text = text?;
                if text != last.0 {
                    last = (text, self.text(field.name(), sensitivity, text));
                }
                Some(last.1.clone())
            })))
        };
        if let Some(texts) = column.as_string_opt::<i32>() {
            return Ok(replace(texts));
        }
        if let Some(dictionary) = column.as_any_dictionary_opt()
            && let Some(texts) = dictionary.values().as_string_opt::<i32>()
        {
            return Ok(dictionary.with_values(replace(texts)));
        }
        if column.data_type() == &DataType::Null {
            return Ok(column.clone());
        }
        Err(ArrowError::SchemaError(format!(
            "column {} of type {} cannot be made anonymous",
            field.name(),
            column.data_type()
        )))
    }

    /// The first digits of the keyed hash of `kind` and `text`.
    fn token(&self, kind: &str, digits: usize, text: &str) -> String {
        let mut mac = self.keyed.clone();
        mac.update(kind.as_bytes());
        mac.update(&[0]);
        mac.update(text.as_bytes());
        let mut token = format!("{kind}-");
        for byte in mac.finalize().into_bytes().iter().take(digits / 2) {
            token.push_str(&format!("{byte:02x}"));
        }
        token
    }

    fn machine(&self, text: &str) -> String {
        match text.parse::<IpAddr>() {
            Ok(_) => self.token("addr", SHORT, text),
            Err(_) => self.token("host", SHORT, text),
        }
    }

    fn extension(&self, text: &str) -> String {
        if is_known(&KNOWN_EXTENSIONS, text) {
            text.to_owned()
        } else {
            // Lower case as in the column `extension`, so that it equals the path's.
            self.token("ext", SHORT, &text.to_lowercase())
        }
    }

    fn path(&self, text: &str) -> String {
        let separator = |c: char| c == '\\' || c == '/';
        let unc = text.chars().take(2).filter(|&c| separator(c)).count() == 2;
        let mut out = String::with_capacity(text.len() * 2);
        let mut place = 0;
        for piece in text.split_inclusive(separator) {
            let component = piece.trim_end_matches(separator);
            if !component.is_empty() {
                match (unc, place) {
                    (true, 0) => out.push_str(&self.machine(&component.to_lowercase())),
                    // Shares ignore case, too.
                    (true, 1) if !is_known(&KNOWN_NAMES, component) => {
                        self.component(&component.to_lowercase(), &mut out);
                    }
                    _ => self.component(component, &mut out),
                }
                place += 1;
            }
            out.extend(piece.get(component.len()..));
        }
        out
    }

    /// One component: name, extension, and the stream's name and type behind colons.
    fn component(&self, text: &str, out: &mut String) {
        for (place, part) in text.split(':').enumerate() {
            if place > 0 {
                out.push(':');
            }
            let wildcards = part.chars().all(|c| "*?<>\".".contains(c));
            if wildcards || is_known(&KNOWN_NAMES, part) {
                out.push_str(part);
            } else if let Some(extension) = extension_of(part).filter(|_| place == 0) {
                let stem = part.len().saturating_sub(extension.len() + 1);
                let stem = part.get(..stem).unwrap_or_default();
                if stem.chars().all(|c| "*?<>\"".contains(c)) {
                    out.push_str(stem)
                } else {
                    out.push_str(&self.token("name", LONG, stem))
                }
                out.push('.');
                out.push_str(&self.extension(extension));
            } else {
                out.push_str(&self.token("name", LONG, part));
            }
        }
    }
}

fn is_known(list: &[&str], text: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(text))
}

/// Names that SMB and NTFS define, not users (MS-SRVS, MS-FSCC section 2.1.5.1, [MS-DSSP]).
const KNOWN_NAMES: [&str; 12] = [
    "IPC$",
    "ADMIN$",
    "C$",
    "print$",
    "SYSVOL",
    "NETLOGON",
    "$DATA",
    "$INDEX_ALLOCATION",
    "Zone.Identifier",
    "AFP_AfpInfo",
    "AFP_Resource",
    "desktop.ini",
];

/// Extensions so common that they identify no one.
const KNOWN_EXTENSIONS: [&str; 132] = [
    "7z", "accdb", "ai", "aif", "asp", "aspx", "avi", "bak", "bat", "bin", "blend", "bmp", "bz2",
    "c", "cab", "cfg", "chm", "class", "cmd", "com", "conf", "cpp", "crt", "cs", "css", "csv",
    "cur", "dat", "db", "dbf", "dcm", "dll", "dmg", "dmp", "doc", "docm", "docx", "dot", "dotx",
    "drv", "dwg", "dxf", "eml", "emf", "eps", "evtx", "exe", "flac", "gif", "git", "go", "gz", "h",
    "heic", "htm", "html", "ico", "idx", "ini", "iso", "jar", "java", "jpeg", "jpg", "js", "json",
    "key", "ldb", "ldf", "lnk", "lock", "log", "m4a", "m4v", "md", "mdb", "mdf", "mkv", "mov",
    "mp3", "mp4", "mpeg", "mpg", "msg", "msi", "msp", "obj", "odp", "ods", "odt", "old", "one",
    "ost", "parquet", "pdf", "php", "png", "pol", "potx", "ppt", "pptm", "pptx", "ps1", "psd",
    "pst", "py", "rar", "reg", "rs", "rtf", "sh", "sql", "sqlite", "svg", "swp", "sys", "tar",
    "tif", "tiff", "tmp", "ttf", "txt", "url", "vhd", "vhdx", "vmdk", "wav", "xls", "xlsm", "xlsx",
    "xml", "zip",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::OperationBuilder;
    use crate::operation::Operation;
    use crate::registry::Part;
    use crate::tables::Handle;
    use arrow::array::cast::as_dictionary_array;
    use arrow::datatypes::Int32Type;

    fn tokenizer() -> Tokenizer {
        Tokenizer::new([7; 32])
    }

    fn path(text: &str) -> String {
        tokenizer().text("path", Sensitivity::Path, text)
    }

    #[test]
    fn tokens_follow_from_key_and_name_alone() {
        let user = |t: &Tokenizer| t.text("user", Sensitivity::Person, "EXAMPLE\\alice");
        assert_eq!(user(&tokenizer()), user(&tokenizer()));
        assert_ne!(user(&tokenizer()), user(&Tokenizer::new([8; 32])));
        let (one, other) = (Tokenizer::random().unwrap(), Tokenizer::random().unwrap());
        assert_ne!(user(&one), user(&other));
        let token = user(&tokenizer());
        assert!(token.starts_with("user-") && token.len() == 13, "{token}");
    }

    #[test]
    fn a_known_answer() {
        // python3: hmac.new(bytes([7]*32), b"addr\0" + b"10.0.0.1", "sha256").hexdigest()[:8]
        let token = tokenizer().text("client", Sensitivity::Machine, "10.0.0.1");
        assert_eq!(token, "addr-cc7ef112");
    }

    #[test]
    fn paths_keep_their_structure() {
        let token = path("projects\\alice\\Salary 2024.DOCX:secret:$DATA");
        let parts: Vec<_> = token.split('\\').collect();
        assert_eq!(parts.len(), 3);
        assert!(parts[2].ends_with(":$DATA") && parts[2].contains(".DOCX:name-"));
        for word in ["projects", "alice", "alary", "2024", "secret"] {
            assert!(!token.contains(word), "{token}");
        }
        assert_eq!(path("x\\alice"), format!("{}\\{}", path("x"), path("alice")));
        assert_eq!(path("a/b").matches('/').count(), 1);
        assert_eq!(path("*"), "*");
        assert_eq!(path("~secret.*").matches("secret").count(), 0);
        assert_eq!(path(""), "");
    }

    #[test]
    fn extensions_that_nobody_knows_become_the_column_s_token() {
        let token = path("budget.AcmeCorp");
        let extension = tokenizer().text("extension", Sensitivity::Extension, "acmecorp");
        assert!(token.ends_with(&format!(".{extension}")), "{token}");
        assert_eq!(tokenizer().text("extension", Sensitivity::Extension, "docx"), "docx");
    }

    #[test]
    fn a_share_s_server_is_a_machine() {
        let host = tokenizer().text("server", Sensitivity::Machine, "fs1.example.com");
        let address = tokenizer().text("server", Sensitivity::Machine, "fe80::1");
        assert!(host.starts_with("host-") && address.starts_with("addr-"));
        let share = path("\\\\fs1.example.com\\Payroll");
        assert!(share.starts_with(&format!("\\\\{host}\\name-")), "{share}");
        assert!(path("\\\\10.0.0.1\\IPC$").ends_with("\\IPC$"));
    }

    #[test]
    fn a_user_or_share_is_one_token_however_it_is_written() {
        let user = |text| tokenizer().text("user", Sensitivity::Person, text);
        assert_eq!(user("EXAMPLE\\Alice"), user("example\\alice"));
        assert_eq!(path("\\\\FS1\\Home"), path("\\\\fs1\\HOME"));
        // Below it, names may differ in case alone.
        assert_ne!(path("Home\\a"), path("home\\a"));
        assert_ne!(path("\\\\fs1\\home\\A"), path("\\\\fs1\\home\\a"));
    }

    #[test]
    fn no_sensitive_text_survives_in_a_batch() {
        let mut builder = OperationBuilder::new(None).unwrap();
        let mut row = Operation::default();
        let names = &mut builder.names;
        row.set_recording(names.recording.intern("monday-acme.pcap"));
        row.set_client(names.client.intern("10.9.8.7"));
        row.set_user(names.user.intern("ACME\\alice"));
        row.set_share(names.share.intern("\\\\acme\\payroll"));
        row.set_path(names.path.intern("alice\\salary.xlsx"));
        row.set_extension(names.extension.intern("xlsx"));
        row.set_offset_bytes(77);
        builder.append(&[row, Operation::default()]);
        let before = builder.finish().unwrap();
        let after = tokenizer().batch(&before).unwrap();
        assert_eq!(after.schema(), before.schema());
        let text = format!("{after:?}").to_lowercase();
        for word in ["acme", "10.9.8.7", "alice", "salary", "payroll"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        let paths = as_dictionary_array::<Int32Type>(&after["path"]);
        assert!(paths.is_null(1) && paths.values().len() == 1);
        assert_eq!(after["offset_bytes"].as_ref(), before["offset_bytes"].as_ref());
    }

    #[test]
    fn rows_of_other_tables_get_the_same_tokens() {
        let handle = Handle {
            recording: "r.pcap".into(),
            client: "10.0.0.1".into(),
            user: Some("alice".into()),
            path: Some("a\\b.txt".into()),
            operations: 4,
            ..Handle::default()
        };
        let part = Part::Handles(vec![handle]).anonymize(&tokenizer()).unwrap();
        let row = &Handle::from_batch(&part.to_batch().unwrap())[0];
        assert_eq!(row.path.as_deref(), Some(path("a\\b.txt").as_str()));
        assert_eq!((row.operations, row.share.as_deref()), (4, None));
        let user = tokenizer().text("user", Sensitivity::Person, "alice");
        assert_eq!(row.user.as_deref(), Some(&*user));
    }

    #[test]
    fn a_column_that_cannot_be_made_anonymous_is_an_error() {
        let mut field = Field::new("client", DataType::UInt64, true);
        field.set_metadata([(SENSITIVITY_KEY.to_owned(), "machine".to_owned())].into());
        let schema = arrow::datatypes::Schema::new(vec![field]);
        let column: ArrayRef = Arc::new(arrow::array::UInt64Array::from(vec![1]));
        let batch = RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap();
        assert!(tokenizer().batch(&batch).is_err());
    }
}
