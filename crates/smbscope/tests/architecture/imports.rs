//! The paths that begin with `crate` or `super` in the sources of a crate, without code for tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::rust_files;

pub struct SourceFile {
    pub path: PathBuf,
    /// Names from the crate's root to the file's module; empty for `lib.rs`.
    pub module: Vec<String>,
    /// Line, and the path from the crate's root.
    pub uses: Vec<(usize, Vec<String>)>,
}

/// All files of a crate that belong to a build without tests.
pub fn crate_files(sources: &Path) -> Vec<SourceFile> {
    let mut files = Vec::new();
    let mut test_modules = BTreeSet::new();
    for path in rust_files(sources) {
        let module = module_of(path.strip_prefix(sources).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        let mut scan = Scan::new(&text, module.clone());
        scan.run();
        test_modules.extend(scan.test_modules);
        files.push(SourceFile { path, module, uses: scan.uses });
    }
    files.retain(|file| {
        let prefixes = (1..=file.module.len()).map(|length| &file.module[..length]);
        let named_tests = file.module.iter().any(|name| name == "tests");
        !named_tests && prefixes.into_iter().all(|prefix| !test_modules.contains(prefix))
    });
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn module_of(relative: &Path) -> Vec<String> {
    let mut names: Vec<String> = relative
        .with_extension("")
        .components()
        .map(|name| name.as_os_str().to_str().unwrap().to_owned())
        .collect();
    if names.last().is_some_and(|name| name == "mod") || names == ["lib"] || names == ["main"] {
        names.pop();
    }
    names
}

/// Finds the paths in the tokens of one file.
struct Scan {
    tokens: Vec<(usize, String)>,
    at: usize,
    /// The module at the current token, with the inline modules around it.
    module: Vec<String>,
    /// Brace depth at which each inline module began.
    inline: Vec<usize>,
    depth: usize,
    uses: Vec<(usize, Vec<String>)>,
    test_modules: BTreeSet<Vec<String>>,
}

impl Scan {
    fn new(text: &str, module: Vec<String>) -> Self {
        Self {
            tokens: tokens(text),
            at: 0,
            module,
            inline: Vec::new(),
            depth: 0,
            uses: Vec::new(),
            test_modules: BTreeSet::new(),
        }
    }

    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |(_, token)| token)
    }

    fn run(&mut self) {
        while self.at < self.tokens.len() {
            match self.token(self.at) {
                "#" if self.token(self.at + 1) == "[" => self.attribute(),
                "mod" if self.token(self.at + 2) == "{" => {
                    let name = self.token(self.at + 1).to_owned();
                    self.module.push(name);
                    self.depth += 1;
                    self.inline.push(self.depth);
                    self.at += 3;
                }
                "{" => {
                    self.depth += 1;
                    self.at += 1;
                }
                "}" => {
                    if self.inline.last() == Some(&self.depth) {
                        self.inline.pop();
                        self.module.pop();
                    }
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                }
                "crate" | "super" | "self" if self.token(self.at + 1) == "::" => self.path(),
                _ => self.at += 1,
            }
        }
    }

    /// At `#[`: skips the attribute, and its item if it is for tests only.
    fn attribute(&mut self) {
        let begin = self.at;
        self.at += 1;
        self.group("[", "]");
        let words: Vec<&str> = (begin..self.at).map(|at| self.token(at)).collect();
        let tests = words.get(2) == Some(&"cfg") && words.contains(&"test");
        if !tests || words.contains(&"not") {
            return;
        }
        // More attributes and the visibility, up to the item.
        while self.token(self.at) == "#" {
            self.at += 1;
            self.group("[", "]");
        }
        if self.token(self.at) == "pub" {
            self.at += 1;
            if self.token(self.at) == "(" {
                self.group("(", ")");
            }
        }
        if self.token(self.at) == "mod" && self.token(self.at + 2) == ";" {
            let mut module = self.module.clone();
            module.push(self.token(self.at + 1).to_owned());
            self.test_modules.insert(module);
        }
        while self.at < self.tokens.len() {
            match self.token(self.at) {
                ";" | "," => break,
                "{" => return self.group("{", "}"),
                "(" => self.group("(", ")"),
                // The end of the enclosing item.
                "}" | ")" => return,
                _ => self.at += 1,
            }
        }
        self.at += 1;
    }

    /// Skips a group in brackets.
    fn group(&mut self, open: &str, close: &str) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            if self.token(self.at) == open {
                depth += 1;
            } else if self.token(self.at) == close {
                depth -= 1;
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// At `crate::`, `super::` or `self::`.
    fn path(&mut self) {
        // `pub(in crate::x)` names where something is visible.
        let visibility =
            self.at >= 2 && self.token(self.at - 1) == "in" && self.token(self.at - 2) == "(";
        let mut path = match self.token(self.at) {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            _ => self.parent(&self.module),
        };
        let line = self.tokens[self.at].0;
        self.at += 2;
        while self.token(self.at) == "super" {
            path = self.parent(&path);
            self.at += 2;
        }
        let first_use = self.uses.len();
        self.tree(line, path);
        if visibility {
            self.uses.truncate(first_use);
        }
    }

    fn parent(&self, path: &[String]) -> Vec<String> {
        path[..path.len().saturating_sub(1)].to_vec()
    }

    /// The rest of a path after `::`, with its groups.
    fn tree(&mut self, line: usize, mut path: Vec<String>) {
        loop {
            let token = self.token(self.at).to_owned();
            if token == "{" {
                self.at += 1;
                while self.at < self.tokens.len() && self.token(self.at) != "}" {
                    if self.token(self.at) == "," {
                        self.at += 1;
                    } else if self.token(self.at) == "as" {
                        self.at += 2;
                    } else {
                        let line = self.tokens[self.at].0;
                        self.tree(line, path.clone());
                    }
                }
                self.at += 1;
                return;
            }
            self.at += 1;
            if token.starts_with(|first: char| first.is_alphanumeric() || first == '_') {
                if token != "self" {
                    path.push(token);
                }
                if self.token(self.at) == "::" {
                    self.at += 1;
                    continue;
                }
            }
            self.uses.push((line, path));
            return;
        }
    }
}

/// Words and signs with their lines, without comments, strings and characters.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let is = |at: usize, wanted: &str| {
        wanted.chars().enumerate().all(|(index, char)| chars.get(at + index) == Some(&char))
    };
    let word = |char: &char| char.is_alphanumeric() || *char == '_';
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let begin = at;
        match chars[at] {
            '/' if is(at, "//") => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
            }
            '/' if is(at, "/*") => {
                let mut depth = 0;
                loop {
                    if is(at, "/*") {
                        depth += 1;
                        at += 2;
                    } else if is(at, "*/") {
                        depth -= 1;
                        at += 2;
                    } else {
                        at += 1;
                    }
                    if depth == 0 || at >= chars.len() {
                        break;
                    }
                }
            }
            'r' if is(at, "r\"") || is(at, "r#\"") || is(at, "r##\"") => {
                at = raw_string(&chars, at)
            }
            'b' if is(at, "br\"") || is(at, "br#\"") => at = raw_string(&chars, at + 1),
            '"' => {
                at += 1;
                while at < chars.len() && chars[at] != '"' {
                    at += if chars[at] == '\\' { 2 } else { 1 };
                }
                at += 1;
            }
            // A character, not a lifetime.
            '\'' if chars.get(at + 1) == Some(&'\\') => {
                at += 3;
                while at < chars.len() && chars[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if chars.get(at + 2) == Some(&'\'') => at += 3,
            ':' if is(at, "::") => {
                tokens.push((line, "::".to_owned()));
                at += 2;
            }
            char if word(&char) => {
                while chars.get(at).is_some_and(word) {
                    at += 1;
                }
                tokens.push((line, chars[begin..at].iter().collect()));
            }
            char => {
                if !char.is_whitespace() {
                    tokens.push((line, char.to_string()));
                }
                at += 1;
            }
        }
        line += chars[begin..at.min(chars.len())].iter().filter(|char| **char == '\n').count();
    }
    tokens
}

/// The end of a raw string that begins at the `r` at `at`.
fn raw_string(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|char| **char == '#').count();
    let mut end = at + hashes + 2;
    while end < chars.len() {
        let closed = chars[end] == '"'
            && chars
                .get(end + 1..end + 1 + hashes)
                .is_some_and(|rest| rest.iter().all(|char| *char == '#'));
        end += 1;
        if closed {
            return end + hashes;
        }
    }
    end
}

#[test]
fn paths_are_found_in_code_and_nowhere_else() {
    let text = r##"
        //! `crate::comment::A`
        use crate::{one::B, two::{self, C as D}};
        use super::three::E; // crate::comment::F
        pub(in crate::visible) fn f() -> &'static str { "crate::string::G" }
        const LIFE: char = '"';
        mod inner {
            use super::sibling::H;
            use super::super::four::I;
        }
        #[cfg(test)]
        mod tests;
        #[cfg(test)]
        use crate::only_tests::{J, K};
        #[cfg(test)]
        mod more {
            use crate::only_tests::L;
        }
        fn g() { crate::five::call(r#"crate::raw::M"#) }
    "##;
    let mut scan = Scan::new(text, vec!["top".to_owned(), "file".to_owned()]);
    scan.run();
    let found: Vec<String> =
        scan.uses.iter().map(|(line, path)| format!("{line} {}", path.join("::"))).collect();
    assert_eq!(
        found,
        [
            "3 one::B",
            "3 two",
            "3 two::C",
            "4 top::three::E",
            "8 top::file::sibling::H",
            "9 top::four::I",
            "19 five::call",
        ]
    );
    let tests = ["top", "file", "tests"].map(str::to_owned).to_vec();
    assert!(scan.test_modules.contains(&tests));
}
