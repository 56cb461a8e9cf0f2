//! Tables of `Export-Csv`, with a comma, a semicolon or a tabulator between the columns.

use super::super::Damage;
use super::{Object, plain};

/// Whether the first line of a text names columns, one of them as `is_known` says.
pub(crate) fn is_csv_heading(text: &str, is_known: impl Fn(&str) -> bool) -> bool {
    let mut lines = text.lines().filter(|line| !line.starts_with("#TYPE"));
    lines.next().is_some_and(|line| {
        let cells: Vec<&str> = line.split([',', ';', '\t']).collect();
        cells.len() > 1 && cells.iter().any(|cell| is_known(&plain(cell)))
    })
}

/// Reads a whole text; `take` gets each row with the number of its line.
pub(crate) fn read_csv(
    text: &str,
    take: &mut dyn FnMut(usize, Object) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let start = text.trim_start();
    let (skipped, body) = match start.strip_prefix("#TYPE") {
        Some(rest) => (1, rest.split_once('\n').map_or("", |(_, body)| body)),
        None => (0, start),
    };
    let skipped =
        skipped + text.get(..text.len() - start.len()).unwrap_or_default().matches('\n').count();
    let number = |position: Option<&csv::Position>| {
        let line = position.map_or(1, csv::Position::line);
        usize::try_from(line).unwrap_or(usize::MAX).saturating_add(skipped)
    };
    let heading = body.lines().next().unwrap_or_default();
    let count = |byte: &u8| heading.matches(char::from(*byte)).count();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(count);
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter.unwrap_or(b',')).from_reader(body.as_bytes());
    let damaged =
        |error: csv::Error| Damage::new(number(error.position()), format!("damaged CSV: {error}"));
    let names = reader.headers().map_err(damaged)?.clone();
    for record in reader.records() {
        let record = record.map_err(damaged)?;
        let line = number(record.position());
        let mut object = Object::default();
        for (name, value) in names.iter().zip(&record) {
            object.push(name, value, line);
        }
        take(line, object)?;
    }
    Ok(())
}
