//! `smbscope ops --where`: the operations that meet an SQL condition.
//!
//! One thread answers, so that the operations keep their order.

use std::sync::Arc;

use anyhow::Context as _;
use smbscope_store::source::Source;
use smbscope_store::sql::{Engine, EngineOptions};
use smbscope_tables::operation;

use crate::cli::Ops;
use crate::exit::{Code, Failure};
use crate::options::Verbosity;
use crate::output::Output;
use crate::progress::Shown;

/// Writes the operations that meet `condition` and returns their number.
pub fn run(
    args: &Ops,
    verbosity: Verbosity,
    source: Source,
    condition: &str,
    columns: Option<Vec<usize>>,
    output: Output,
) -> anyhow::Result<u64> {
    let schema = operation::schema();
    let names: Vec<_> = match &columns {
        Some(places) => places.iter().filter_map(|&place| schema.fields().get(place)).collect(),
        None => schema.fields().iter().collect(),
    };
    let names: Vec<_> = names.into_iter().map(|field| format!("\"{}\"", field.name())).collect();
    let mut sql = format!("select {} from operations where (\n{condition}\n)", names.join(", "));
    if let Some(limit) = args.limit {
        sql.push_str(&format!(" limit {limit}"));
    }
    let options = EngineOptions { threads: 1, ..EngineOptions::default() };
    let engine = Arc::new(Engine::with_options(source, options)?);
    let of = engine.clone();
    let _shown = Shown::begin_of(verbosity, move || of.progress());
    let answer = engine.query(&sql).context(Failure::new(Code::Query, "--where"))?;
    super::write(args, &answer.schema(), answer, output)
}
