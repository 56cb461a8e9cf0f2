//! Paths and patterns with placeholders: `{doc.dir}/~${doc.stem}.docx`.
//!
//! Owns parsing and filling them. In TOML separators are `/`; on the wire they are `\`, below the
//! share's root, so a path gets the user's home as a prefix.

use std::fmt::Write as _;

/// Index of a file in [`Scenario::picks`](super::Scenario::picks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PickId(pub u8);

/// A path (or a search pattern) with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// As written in TOML.
    pub source: String,
    /// Whether it is a path below the home, and not a search pattern.
    pub is_path: bool,
    pub(super) parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Pick(PickId, Field),
    Run,
}

/// A piece of a picked file's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Path,
    Dir,
    Name,
    Stem,
    Extension,
}

/// The values that fill a template.
pub(super) trait Values {
    /// Appends a piece of a picked file's path, with `\`.
    fn push(&self, out: &mut String, pick: PickId, field: Field);
    /// The number of the execution.
    fn run(&self) -> u64;
}

impl Template {
    /// Reads a template; `picks` are the names of the scenario's files.
    pub(super) fn parse(source: &str, is_path: bool, picks: &[&str]) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = source;
        loop {
            let open = rest.find('{').unwrap_or(rest.len());
            let (text, behind) = rest.split_at(open);
            if let Some(bad) = bad_character(text, is_path) {
                return Err(bad);
            }
            if !text.is_empty() {
                parts.push(Part::Text(text.replace('/', "\\")));
            }
            if behind.is_empty() {
                break;
            }
            let Some(close) = behind.find('}') else {
                return Err(format!("`{source}`: a `{{` without `}}`"));
            };
            parts.push(placeholder(&behind[1..close], picks)?);
            rest = &behind[close + 1..];
        }
        if is_path && (source.starts_with('/') || source.ends_with('/') || source.contains("//")) {
            return Err(format!(
                "`{source}`: a path begins and ends with a name, and the home itself is \"\""
            ));
        }
        if is_path && let Some(name) = source.split('/').find(|name| leads_away(name)) {
            return Err(format!(
                "`{source}`: `{name}` leads out of the user's home, where everything of a workload lies: name files and folders below it"
            ));
        }
        Ok(Template { source: source.into(), is_path, parts })
    }

    /// Appends the text; a path gets `home` in front.
    pub(super) fn render(&self, out: &mut String, home: &str, values: &impl Values) {
        let start = out.len();
        if self.is_path {
            out.push_str(home);
            if !home.is_empty() {
                out.push('\\');
            }
        }
        let body = out.len();
        for part in &self.parts {
            match part {
                // The folder of a file in the home itself is empty, and so is the separator after it.
                Part::Text(text) if out.len() == body => {
                    out.push_str(text.trim_start_matches('\\'))
                }
                Part::Text(text) => out.push_str(text),
                Part::Pick(pick, field) => values.push(out, *pick, *field),
                Part::Run => {
                    let _ = write!(out, "{:05}", values.run());
                }
            }
        }
        if out.len() == body && body > start {
            out.truncate(body - 1);
        }
    }
}

fn placeholder(name: &str, picks: &[&str]) -> Result<Part, String> {
    if name == "run" {
        return Ok(Part::Run);
    }
    let (pick, field) = name.split_once('.').unwrap_or((name, "path"));
    let Some(at) = picks.iter().position(|known| *known == pick) else {
        let known: Vec<String> = picks.iter().map(|pick| format!("{{{pick}}}")).collect();
        let known = if known.is_empty() {
            "only {run}".into()
        } else {
            format!("{{run}}, {}", known.join(", "))
        };
        return Err(format!("`{{{name}}}` is not a placeholder here; use {known}"));
    };
    let field = match field {
        "path" => Field::Path,
        "dir" => Field::Dir,
        "name" => Field::Name,
        "stem" => Field::Stem,
        "ext" => Field::Extension,
        _ => {
            return Err(format!(
                "`{{{name}}}`: a file has {{{pick}}}, {{{pick}.dir}}, {{{pick}.name}}, {{{pick}.stem}} and {{{pick}.ext}}"
            ));
        }
    };
    Ok(Part::Pick(PickId(at as u8), field))
}

/// Whether a part of a path may be `.` or `..`, which servers follow. Placeholders may be empty; some
/// servers ignore dots and spaces at the end of a name.
fn leads_away(name: &str) -> bool {
    let mut bare = String::new();
    let mut rest = name;
    while let Some((text, behind)) = rest.split_once('{') {
        bare.push_str(text);
        rest = behind.split_once('}').map_or("", |(_, behind)| behind);
    }
    bare.push_str(rest);
    let placeholders = bare.len() != name.len();
    match bare.trim() {
        "" => false,
        "." => !placeholders,
        dots => dots.chars().all(|c| c == '.' || c == ' '),
    }
}

fn bad_character(text: &str, is_path: bool) -> Option<String> {
    let forbidden = if is_path { "\\:*?\"<>|}" } else { "\\/:|}" };
    let bad = text.chars().find(|&c| c.is_control() || forbidden.contains(c))?;
    Some(match bad {
        '\\' => "paths are written with `/`".into(),
        '}' => "a `}` without `{`".into(),
        _ => {
            format!(
                "{bad:?} is not allowed in a {}",
                if is_path { "path" } else { "search pattern" }
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Doc(&'static str);

    impl Values for Doc {
        fn push(&self, out: &mut String, _: PickId, field: Field) {
            let (dir, name) = self.0.rsplit_once('\\').unwrap_or(("", self.0));
            let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
            out.push_str(match field {
                Field::Path => self.0,
                Field::Dir => dir,
                Field::Name => name,
                Field::Stem => stem,
                Field::Extension => extension,
            });
        }

        fn run(&self) -> u64 {
            42
        }
    }

    fn render(template: &str, home: &str, doc: &'static str) -> String {
        let mut out = String::new();
        Template::parse(template, true, &["doc"]).unwrap().render(&mut out, home, &Doc(doc));
        out
    }

    #[test]
    fn fills_in_and_puts_the_home_in_front() {
        assert_eq!(render("{doc}", "user1", "a\\b.docx"), "user1\\a\\b.docx");
        assert_eq!(render("{doc.dir}/~${doc.stem}.{doc.ext}", "u", "a\\b.docx"), "u\\a\\~$b.docx");
        assert_eq!(render("{doc.dir}/desktop.ini", "u", "b.docx"), "u\\desktop.ini");
        assert_eq!(render("{doc.dir}", "u", "b.docx"), "u");
        assert_eq!(render("", "u", "b.docx"), "u");
        assert_eq!(render("", "", "b.docx"), "");
        assert_eq!(render("x/~WRD{run}.tmp", "", "b.docx"), "x\\~WRD00042.tmp");
    }

    #[test]
    fn errors_are_explained() {
        let wrong = |text| Template::parse(text, true, &["doc"]).unwrap_err();
        assert!(wrong("{dok}").contains("{doc}"));
        assert!(wrong("{doc.size}").contains("{doc.stem}"));
        assert!(wrong("{doc").contains("without"));
        assert!(wrong("a\\b").contains("`/`"));
        assert!(wrong("a*").contains('*'));
        assert!(wrong("/a").contains("begins"));
        for away in
            ["..", "../a", "a/../b", "a/..", "./a", ".. /a", "{doc.dir}/../a", "..{doc.ext}"]
        {
            assert!(wrong(away).contains("leads out"), "{away}");
        }
        for below in ["a..b/.c", "{doc.stem}.{doc.ext}", "{doc}/..a", "a/b..c"] {
            assert!(Template::parse(below, true, &["doc"]).is_ok(), "{below}");
        }
        assert!(Template::parse("*.do?", false, &[]).is_ok());
    }
}
