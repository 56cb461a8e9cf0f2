//! Reads a TOML table key by key, with the position of everything.
//!
//! serde would report the position of a wrong type, but not of a wrong meaning (an unknown handle), nor
//! what else could have been written; so the spanned document is walked by hand.

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Source, WorkloadError, nearest};

/// A value and its position.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// One table.
pub(super) struct Table<'a> {
    pub source: Source<'a>,
    /// Its position.
    pub span: Range<usize>,
    /// Its description for messages: "a step".
    what: &'static str,
    entries: &'a DeTable<'a>,
    known: RefCell<Vec<&'static str>>,
}

type Read<T> = Result<T, WorkloadError>;

impl<'a> Table<'a> {
    pub fn new(
        source: Source<'a>,
        entries: &'a DeTable<'a>,
        span: Range<usize>,
        what: &'static str,
    ) -> Self {
        Table { source, span, what, entries, known: RefCell::default() }
    }

    /// A value that must be a table.
    pub fn from_value(
        source: Source<'a>,
        value: &'a Spanned<DeValue<'a>>,
        what: &'static str,
    ) -> Read<Self> {
        match value.get_ref() {
            DeValue::Table(entries) => Ok(Table::new(source, entries, value.span(), what)),
            other => Err(wrong(source, value.span(), what, "a table", other)),
        }
    }

    pub fn error(&self, message: impl Into<String>) -> WorkloadError {
        self.source.error(self.span.clone(), message)
    }

    /// The value of a key; marks the key as known.
    fn raw(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.borrow_mut().push(key);
        self.entries.get(key)
    }

    pub fn has_key(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The position of a key, or else of the table.
    pub fn key_span(&self, key: &str) -> Range<usize> {
        self.entries.get_key_value(key).map_or(self.span.clone(), |(key, _)| key.span())
    }

    /// All entries in the order of the file; for tables with names as keys.
    pub fn entries(&self) -> Vec<(At<&'a str>, &'a Spanned<DeValue<'a>>)> {
        let mut entries: Vec<_> = self
            .entries
            .iter()
            .map(|(key, value)| (At { value: key.get_ref().as_ref(), span: key.span() }, value))
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    pub fn text(&self, key: &'static str) -> Read<Option<At<&'a str>>> {
        self.raw(key).map(|value| text(self.source, value, key)).transpose()
    }

    pub fn need_text(&self, key: &'static str) -> Read<At<&'a str>> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    pub fn flag(&self, key: &'static str) -> Read<bool> {
        match self.raw(key) {
            None => Ok(false),
            Some(value) => match value.get_ref() {
                DeValue::Boolean(flag) => Ok(*flag),
                other => Err(wrong(self.source, value.span(), key, "true or false", other)),
            },
        }
    }

    /// A whole number in a range.
    pub fn number(&self, key: &'static str, range: Range<u64>) -> Read<Option<At<u64>>> {
        self.raw(key).map(|value| number(self.source, value, key, &range)).transpose()
    }

    /// A positive number, whole or not.
    pub fn real(&self, key: &'static str) -> Read<Option<At<f64>>> {
        let Some(value) = self.raw(key) else { return Ok(None) };
        let real = match value.get_ref() {
            DeValue::Integer(digits) => whole(digits).map(|number| number as f64),
            DeValue::Float(digits) => digits.as_str().replace('_', "").parse().ok(),
            other => return Err(wrong(self.source, value.span(), key, "a number", other)),
        };
        match real {
            Some(real) if real.is_finite() => Ok(Some(At { value: real, span: value.span() })),
            _ => Err(self
                .source
                .error(value.span(), format!("`{key}` must be a finite number from 0 up"))),
        }
    }

    /// A number of bytes: a whole number, or text with a unit such as "64 KiB".
    pub fn bytes(&self, key: &'static str) -> Read<Option<At<u64>>> {
        self.raw(key).map(|value| bytes(self.source, value, key)).transpose()
    }

    /// A list, or one value instead of a list of one.
    pub fn list(&self, key: &'static str) -> Read<Option<At<Vec<&'a Spanned<DeValue<'a>>>>>> {
        Ok(self.raw(key).map(|value| match value.get_ref() {
            DeValue::Array(list) => At { value: list.iter().collect(), span: value.span() },
            _ => At { value: vec![value], span: value.span() },
        }))
    }

    /// A list of texts, or one text.
    pub fn texts(&self, key: &'static str) -> Read<Option<At<Vec<At<&'a str>>>>> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        let texts = list.value.into_iter().map(|value| text(self.source, value, key));
        Ok(Some(At { value: texts.collect::<Read<_>>()?, span: list.span }))
    }

    pub fn table(&self, key: &'static str, what: &'static str) -> Read<Option<Table<'a>>> {
        self.raw(key).map(|value| Table::from_value(self.source, value, what)).transpose()
    }

    pub fn missing(&self, key: &str) -> WorkloadError {
        self.error(format!("{} needs `{key}`", self.what))
    }

    /// Fails at the first key that was never read.
    pub fn finish(&self) -> Read<()> {
        let known = self.known.borrow();
        let Some((key, _)) =
            self.entries().into_iter().find(|(key, _)| !known.contains(&key.value))
        else {
            return Ok(());
        };
        let error =
            self.source.error(key.span, format!("{} has no key `{}`", self.what, key.value));
        Err(error.help(match nearest(key.value, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there is {}", quoted(&known)),
        }))
    }
}

/// Formats a list for a message: `a`, `b` and `c`.
pub(super) fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

pub(super) fn text<'a>(
    source: Source<'a>,
    value: &'a Spanned<DeValue<'a>>,
    key: &str,
) -> Read<At<&'a str>> {
    match value.get_ref() {
        DeValue::String(text) => Ok(At { value: text.as_ref(), span: value.span() }),
        other => Err(wrong(source, value.span(), key, "text", other)),
    }
}

pub(super) fn number<'a>(
    source: Source<'a>,
    value: &'a Spanned<DeValue<'a>>,
    key: &str,
    range: &Range<u64>,
) -> Read<At<u64>> {
    let DeValue::Integer(digits) = value.get_ref() else {
        return Err(wrong(source, value.span(), key, "a whole number", value.get_ref()));
    };
    match whole(digits) {
        Some(number) if range.contains(&number) => Ok(At { value: number, span: value.span() }),
        _ => {
            let text =
                format!("`{key}` must be from {} to {}", range.start, range.end.saturating_sub(1));
            Err(source.error(value.span(), text))
        }
    }
}

pub(super) fn bytes<'a>(
    source: Source<'a>,
    value: &'a Spanned<DeValue<'a>>,
    key: &str,
) -> Read<At<u64>> {
    let count = match value.get_ref() {
        DeValue::Integer(digits) => whole(digits),
        DeValue::String(text) => super::words::parse_bytes(text),
        other => return Err(wrong(source, value.span(), key, "a number of bytes", other)),
    };
    let count = count.filter(|&count| count < 1 << 50);
    count.map(|count| At { value: count, span: value.span() }).ok_or_else(|| {
        let error =
            source.error(value.span(), format!("`{key}` is not a number of bytes below 1 PiB"));
        error.help("write a whole number, or text such as \"64 KiB\", \"1 MiB\", \"2 GiB\"")
    })
}

fn whole(digits: &toml::de::DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(&digits.as_str().replace('_', ""), digits.radix()).ok()
}

fn wrong(
    source: Source<'_>,
    span: Range<usize>,
    what: &str,
    wanted: &str,
    found: &DeValue<'_>,
) -> WorkloadError {
    let found = match found {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    source.error(span, format!("`{what}` must be {wanted}, not {found}"))
}
