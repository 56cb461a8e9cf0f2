//! The parameters of smb.conf: names, synonyms, spellings of values, and defaults of Samba 4.17 and 4.22.
//!
//! The table `parameters.csv` is made by `tests/policies/parameters.py` from what the real `testparm` programs print; the
//! tests compare it with them again.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Whether shares can have it; the others are global only.
    pub is_of_share: bool,
    pub kind: Kind,
    /// The default as `testparm -sv` prints it; `None` if that version does not know the parameter, `*` if it depends on
    /// the machine.
    pub default_4_17: Option<&'static str>,
    pub default_4_22: Option<&'static str>,
    /// Spellings of each value, the one that `testparm` prints first.
    pub values: Vec<Vec<&'static str>>,
    pub synonyms: Vec<Synonym>,
}

/// Another name of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synonym {
    pub name: &'static str,
    /// Whether it means the opposite (`writable` of `read only`).
    pub is_inverse: bool,
}

/// How `testparm` understands a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Enum,
    Bytes,
    List,
    Other,
}

const TABLE: &str = include_str!("parameters.csv");

static PARAMETERS: LazyLock<Vec<Parameter>> =
    LazyLock::new(|| TABLE.lines().skip(1).filter_map(parameter).collect());

/// Name without space in lower case to the parameter, and whether the name is an inverse synonym.
static BY_NAME: LazyLock<HashMap<String, (&'static Parameter, bool)>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for parameter in PARAMETERS.iter() {
        names.insert(normal(parameter.name), (parameter, false));
        for synonym in &parameter.synonyms {
            names.insert(normal(synonym.name), (parameter, synonym.is_inverse));
        }
    }
    names
});

/// All parameters, sorted by name.
pub fn parameters() -> &'static [Parameter] {
    &PARAMETERS
}

/// The parameter of a name or a synonym in any spelling, and whether the name means the opposite.
pub(crate) fn find(name: &str) -> Option<(&'static Parameter, bool)> {
    BY_NAME.get(&normal(name)).copied()
}

/// Samba compares names without case and space (`strwicmp`).
fn normal(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// A line of the table. No field has a comma or a quote in it except defaults, which are quoted then.
fn parameter(line: &'static str) -> Option<Parameter> {
    let fields = fields(line);
    let [name, scope, kind, older, newer, values, synonyms] = fields.as_slice() else {
        return None;
    };
    let default = |text: &'static str| (text != "-").then_some(text);
    let list = |text: &'static str| text.split('|').filter(|word| !word.is_empty());
    Some(Parameter {
        name,
        is_of_share: *scope == "share",
        kind: match *kind {
            "bool" => Kind::Bool,
            "enum" => Kind::Enum,
            "bytes" => Kind::Bytes,
            "list" => Kind::List,
            _ => Kind::Other,
        },
        default_4_17: default(older),
        default_4_22: default(newer),
        values: list(values).map(|value| value.split('=').collect()).collect(),
        synonyms: list(synonyms)
            .map(|name| match name.strip_suffix('!') {
                Some(name) => Synonym { name, is_inverse: true },
                None => Synonym { name, is_inverse: false },
            })
            .collect(),
    })
}

/// Fields of a line of CSV; a quoted one has no quote within.
fn fields(line: &'static str) -> Vec<&'static str> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, next) = match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((field, next)) => (field, next.strip_prefix(',')),
            None => rest.split_once(',').map_or((rest, None), |(field, next)| (field, Some(next))),
        };
        fields.push(field);
        match next {
            Some(next) => rest = next,
            None => return fields,
        }
    }
}

impl Parameter {
    /// A value in the spelling of `testparm`. `is_inverse`: it is the value of an inverse synonym.
    pub(crate) fn canonical(&self, value: &str, is_inverse: bool) -> String {
        match self.kind {
            Kind::Bool => match (boolean(value), is_inverse) {
                (Some(flag), is_inverse) => {
                    if flag != is_inverse { "Yes" } else { "No" }.to_owned()
                }
                (None, _) => value.to_owned(),
            },
            Kind::Enum => {
                let same =
                    |group: &&Vec<&str>| group.iter().any(|word| word.eq_ignore_ascii_case(value));
                let group = self.values.iter().find(same).and_then(|group| group.first());
                group.map_or_else(|| value.to_owned(), |word| (*word).to_owned())
            }
            Kind::Bytes => bytes(value).map_or_else(|| value.to_owned(), |bytes| bytes.to_string()),
            Kind::List if !value.contains(['"', '\'']) => {
                let words = value.split([' ', '\t', ',', ';', '\n', '\r']);
                words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
            }
            _ => value.to_owned(),
        }
    }
}

/// `set_boolean` of Samba.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// `conv_str_size` of Samba: a number with K, M, G, T or P.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, power) = match text.chars().last()?.to_ascii_lowercase() {
        'k' => (text.get(..text.len() - 1)?, 1),
        'm' => (text.get(..text.len() - 1)?, 2),
        'g' => (text.get(..text.len() - 1)?, 3),
        't' => (text.get(..text.len() - 1)?, 4),
        'p' => (text.get(..text.len() - 1)?, 5),
        _ => (text, 0),
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(1024_u64.checked_pow(power)?)
}
