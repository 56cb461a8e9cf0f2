//! The course over time: rate, percentiles, in flight, errors, bytes, waits by kind, CPU time of interrupts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use smbscope_store::questions;

use crate::data::{About, Loaded};
use crate::error::{Error, Result};
use crate::filter::{Filter, literal};
use crate::subject::{INTERRUPTS, OPERATIONS};
use crate::value::Rows;

/// Most points of a line.
const BINS_MAX: i64 = 1_000;
/// Most bars of a second are not finer than this, ns.
const STEP_MIN_NS: i64 = 1_000;

/// The request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    pub filter: Filter,
    /// Points of a line.
    pub bins: i64,
}

/// Equal parts of a period, ns since 1970.
#[derive(Clone, Copy)]
struct Bins {
    from: i64,
    to: i64,
    step: i64,
    count: usize,
}

impl Bins {
    /// Parts of the filter's period, or of the whole.
    fn new(request: &Request, loaded: &Loaded) -> Result<Option<Bins>> {
        let (from, to) = request.filter.period()?;
        let whole = loaded.extent.map(|(first, last)| (first, last.saturating_add(1)));
        let (Some(from), Some(to)) = (from.or(whole.map(|it| it.0)), to.or(whole.map(|it| it.1)))
        else {
            return Ok(None);
        };
        if to <= from {
            return Err(Error::request("the period ends before it begins"));
        }
        let length =
            to.checked_sub(from).ok_or_else(|| Error::request("the period is too long"))?;
        let bins = request.bins.clamp(1, BINS_MAX);
        let step = round_up((length / bins).max(STEP_MIN_NS));
        let count = usize::try_from(length / step + i64::from(length % step > 0)).unwrap_or(1);
        Ok(Some(Bins { from, to, step, count }))
    }

    /// The part in which a time lies, as SQL.
    fn of(&self, time: &str) -> String {
        format!("({time} - {}) / {}", self.from, self.step)
    }

    /// One line from rows of a bin and a value.
    fn line(&self, rows: impl Iterator<Item = (i64, Value)>, empty: &Value) -> Vec<Value> {
        let mut line = vec![empty.clone(); self.count];
        for (bin, value) in rows {
            if let Some(place) = usize::try_from(bin).ok().and_then(|bin| line.get_mut(bin)) {
                *place = value;
            }
        }
        line
    }
}

/// 1, 2 or 5 times a power of ten.
fn round_up(ns: i64) -> i64 {
    let mut power = 1_i64;
    while let Some(next) = power.checked_mul(10).filter(|next| *next <= ns) {
        power = next;
    }
    let fits = [1, 2, 5, 10].into_iter().map(|n| power.saturating_mul(n));
    fits.into_iter().find(|step| *step >= ns).unwrap_or(ns)
}

/// All lines.
///
/// # Errors
///
/// Those of the queries, and if the period is not one.
pub fn answer(request: &Request, loaded: &Loaded, about: &About) -> Result<Value> {
    let Some(bins) = Bins::new(request, loaded)? else {
        return Ok(json!({ "from": null, "step_ns": null, "count": 0, "lines": {}, "sql": "" }));
    };
    let offset_s = about.clock.offset_s();
    let conditions = request.filter.conditions(&OPERATIONS, offset_s)?.join(" AND ");
    let sql = operations(&bins, &conditions);
    let names = ["n", "errors", "bytes", "p50", "p95", "p99", "max"];
    let rows: Vec<_> = Rows::new(&loaded.query(&sql)?)?.iter().collect();
    let mut lines = BTreeMap::new();
    for (place, name) in names.into_iter().enumerate() {
        let empty = if place < 3 { json!(0) } else { Value::Null };
        let pairs = rows
            .iter()
            .filter_map(|row| Some((row.first()?.as_i64()?, row.get(place + 1)?.clone())));
        lines.insert(name.to_owned(), bins.line(pairs, &empty));
    }
    lines.insert("in_flight".to_owned(), in_flight(&bins, &conditions, loaded)?);
    Ok(json!({
        "from": bins.from.to_string(),
        "step_ns": bins.step,
        "count": bins.count,
        "lines": lines,
        "waits": waits(&bins, &request.filter, loaded)?,
        "interrupts": interrupts(&bins, &request.filter, offset_s, loaded)?,
        "sql": sql,
    }))
}

fn operations(bins: &Bins, conditions: &str) -> String {
    format!(
        "SELECT\n  {} AS bin,\n  count(*) AS n,\n  count(*) FILTER (WHERE {}) AS errors,\n  \
         coalesce(sum(CAST(transferred_bytes AS BIGINT)), 0) AS bytes,\n  percentile(elapsed_ns, 0.5) AS p50,\n  \
         percentile(elapsed_ns, 0.95) AS p95,\n  percentile(elapsed_ns, 0.99) AS p99,\n  max(elapsed_ns) AS max\n\
         FROM operations\nWHERE {conditions} AND request_start >= {} AND request_start < {}\nGROUP BY 1\nORDER BY 1",
        bins.of("request_start"),
        questions::ERRORS,
        bins.from,
        bins.to,
    )
}

/// Operations in flight at the end of each part: those that began before, less those that ended before. Operations
/// without a reply never end and are left out.
fn in_flight(bins: &Bins, conditions: &str, loaded: &Loaded) -> Result<Vec<Value>> {
    let Bins { from, to, .. } = bins;
    let sql = format!(
        "SELECT bin, sum(change) FROM (\n  \
         SELECT CASE WHEN request_start < {from} THEN -1 ELSE {} END AS bin, 1 AS change FROM operations\n  \
         WHERE {conditions} AND request_start < {to} AND response_end >= {from}\n  UNION ALL\n  \
         SELECT {} AS bin, -1 AS change FROM operations\n  \
         WHERE {conditions} AND request_start < {to} AND response_end >= {from} AND response_end < {to}\n) GROUP BY bin ORDER BY bin",
        bins.of("request_start"),
        bins.of("response_end"),
    );
    let rows: Vec<_> = Rows::new(&loaded.query(&sql)?)?.iter().collect();
    let mut now = 0;
    let mut changes =
        rows.iter().filter_map(|row| Some((row.first()?.as_i64()?, row.get(1)?.as_i64()?)));
    let mut next = changes.next();
    let mut line = Vec::with_capacity(bins.count);
    for bin in 0..bins.count as i64 {
        while let Some((at, change)) = next.filter(|(at, _)| *at <= bin) {
            let _ = at;
            now += change;
            next = changes.next();
        }
        line.push(json!(now));
    }
    Ok(line)
}

/// Waits other than operations by kind: their sum in each part in which they began. Conditions on client and server
/// apply to them.
fn waits(bins: &Bins, filter: &Filter, loaded: &Loaded) -> Result<BTreeMap<String, Vec<Value>>> {
    let mut conditions = vec![format!("started_at >= {} AND started_at < {}", bins.from, bins.to)];
    for key in ["client", "server"] {
        let values = filter.values.get(key).into_iter().flatten().flatten();
        let values: Vec<_> = values.map(|value| literal(value)).collect();
        if !values.is_empty() {
            conditions.push(format!("{key} IN ({})", values.join(", ")));
        }
    }
    let sql = format!(
        "SELECT kind, {} AS bin, sum(coalesce(ended_at, last_attempt) - started_at) FROM waits WHERE {} GROUP BY 1, 2",
        bins.of("started_at"),
        conditions.join(" AND ")
    );
    by_kind(bins, &sql, loaded)
}

/// CPU time of interrupts and deferred work by kind.
fn interrupts(
    bins: &Bins,
    filter: &Filter,
    offset_s: i32,
    loaded: &Loaded,
) -> Result<BTreeMap<String, Vec<Value>>> {
    if !loaded.has_interrupts() {
        return Ok(BTreeMap::new());
    }
    let conditions = filter.conditions(&INTERRUPTS, offset_s)?.join(" AND ");
    let sql = format!(
        "SELECT kind, {} AS bin, sum(exclusive_ns) FROM interrupts WHERE {conditions} AND start >= {} AND start < {} GROUP BY 1, 2",
        bins.of("start"),
        bins.from,
        bins.to
    );
    by_kind(bins, &sql, loaded)
}

fn by_kind(bins: &Bins, sql: &str, loaded: &Loaded) -> Result<BTreeMap<String, Vec<Value>>> {
    let mut kinds: BTreeMap<String, Vec<(i64, Value)>> = BTreeMap::new();
    for row in Rows::new(&loaded.query(sql)?)?.iter() {
        if let [Value::String(kind), bin, value] = row.as_slice()
            && let Some(bin) = bin.as_i64()
        {
            kinds.entry(kind.clone()).or_default().push((bin, value.clone()));
        }
    }
    let lines =
        kinds.into_iter().map(|(kind, rows)| (kind, bins.line(rows.into_iter(), &json!(0))));
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (ns, step) in [(1_000, 1_000), (1_001, 2_000), (4_999, 5_000), (5_001, 10_000)] {
            assert_eq!(round_up(ns), step);
        }
        assert!(round_up(i64::MAX) >= i64::MAX / 10);
    }
}
