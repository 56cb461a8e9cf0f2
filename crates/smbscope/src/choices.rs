//! Options whose values are those of a closed enum of another crate.
//!
//! Owns the parser; the enum owns its list and names, so that clap needs no copy of it.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser of the enum whose variants are `all`, with the sentence that `--help` shows for each.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    help: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let shown = all.iter().map(|&one| PossibleValue::new(name(one)).help(help(one)));
    PossibleValuesParser::new(shown).try_map(move |given| {
        let found = all.iter().copied().find(|&one| name(one) == given);
        found.ok_or("not one of the possible values")
    })
}
