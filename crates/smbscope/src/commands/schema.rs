//! `smbscope schema`: the meaning of tables and columns, and the JSON Schemas of answers.

use std::path::Path;

use anyhow::Context as _;
use arrow::datatypes::{DataType, Field};
use serde_json::{Value, json};
use smbscope_report::ALL_FIELDS;
use smbscope_store::Table;
use smbscope_tables::SCHEMA_VERSION;
use smbscope_tables::column::{DOC_KEY, SENSITIVITY_KEY, Sensitivity, UNIT_KEY};

use crate::cli::Schema;
use crate::exit::{Code, Failure};
use crate::format::{Align, Column, TextFormat, lines};
use crate::output::Output;

/// Prints one table or all, or the JSON Schema of an answer; with `--dir`, writes all JSON Schemas.
pub fn run(args: &Schema) -> anyhow::Result<()> {
    if let Some(dir) = &args.dir {
        return write_documents(dir);
    }
    let mut output = Output::stdout();
    let name = args.table.as_deref();
    if let Some(fields) = ALL_FIELDS.iter().find(|fields| Some(fields.name) == name) {
        output.text(&format!("{:#}\n", smbscope_report::schema(fields)))?;
        return output.finish();
    }
    let tables = match name {
        None => Table::ALL.to_vec(),
        Some(name) => vec![Table::from_name(name).ok_or_else(|| {
            let tables = Table::ALL.iter().map(|table| table.name());
            let names: Vec<_> = tables.chain(ALL_FIELDS.iter().map(|fields| fields.name)).collect();
            Failure::usage(format!("unknown table {name}: expected one of {}", names.join(", ")))
        })?],
    };
    match args.format {
        TextFormat::Json => {
            let tables: Vec<_> = tables.into_iter().map(table_json).collect();
            let schema = json!({ "schema_version": SCHEMA_VERSION, "tables": tables });
            output.text(&format!("{schema:#}\n"))?;
        }
        TextFormat::Text => {
            for (place, table) in tables.into_iter().enumerate() {
                if place > 0 {
                    output.text("\n")?;
                }
                let text = table_text(table, &output);
                output.text(&text)?;
            }
        }
    }
    output.finish()
}

/// Writes each JSON Schema as `NAME.schema.json`.
fn write_documents(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| {
        Failure::new(Code::Output, format!("{}: cannot create the folder", dir.display()))
    })?;
    for fields in ALL_FIELDS {
        let mut output = Output::file(&dir.join(format!("{}.schema.json", fields.name)))?;
        output.text(&format!("{:#}\n", smbscope_report::schema(fields)))?;
        output.finish()?;
    }
    Ok(())
}

/// A table's columns as text.
pub fn table_text(table: Table, output: &Output) -> String {
    let titles = ["column", "type", "unit", "names", "meaning"];
    let columns = titles.map(|title| Column { title: title.into(), align: Align::Left });
    let schema = table.schema();
    let rows = schema.fields().iter().map(|field| {
        vec![
            field.name().clone(),
            type_name(field.data_type()),
            note(field, UNIT_KEY).to_owned(),
            note(field, SENSITIVITY_KEY).to_owned(),
            note(field, DOC_KEY).to_owned(),
        ]
    });
    let (bold, end) = output.bold();
    let list = lines(&columns, &rows.collect::<Vec<_>>(), (bold, end));
    format!("{bold}Table {}{end}: {}\n{list}", table.name(), table.description())
}

fn table_json(table: Table) -> Value {
    let schema = table.schema();
    let columns = schema.fields().iter().map(|field| {
        let unit = Some(note(field, UNIT_KEY)).filter(|unit| !unit.is_empty());
        let sensitivity = Some(note(field, SENSITIVITY_KEY)).filter(|word| !word.is_empty());
        json!({
            "name": field.name(),
            "type": type_name(field.data_type()),
            "nullable": field.is_nullable(),
            "unit": unit,
            "sensitivity": sensitivity.unwrap_or(Sensitivity::Public.name()),
            "meaning": note(field, DOC_KEY),
        })
    });
    json!({ "name": table.name(), "columns": columns.collect::<Vec<_>>() })
}

fn note<'a>(field: &'a Field, key: &str) -> &'a str {
    field.metadata().get(key).map_or("", String::as_str)
}

/// A short name of the type.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, values) => type_name(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::FixedSizeBinary(bytes) => format!("{bytes} bytes"),
        other => other.to_string().to_lowercase(),
    }
}
