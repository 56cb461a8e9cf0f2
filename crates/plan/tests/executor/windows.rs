//! A Windows machine that executes the commands that a search prints: registry, configuration of the SMB server and client,
//! auditing, security templates. It reads the printed text; a command that it does not know fails the test.

use std::collections::{BTreeMap, BTreeSet};

/// Where a value is: registry, `server`, `client`, `audit` or `template`, and its name, in lower case.
pub type Slot = (String, String);

/// The state of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    pub values: BTreeMap<Slot, String>,
    /// Keys of the registry that exist; an empty one says nothing, so it is not compared.
    keys: Keys,
    /// Lines of the template that `Set-Content` wrote last.
    template: Template,
}

#[derive(Clone, Debug, Default)]
struct Keys(BTreeSet<String>);

impl PartialEq for Keys {
    fn eq(&self, _: &Keys) -> bool {
        true
    }
}

impl Eq for Keys {}

#[derive(Clone, Debug, Default)]
struct Template(Vec<String>);

impl PartialEq for Template {
    fn eq(&self, _: &Template) -> bool {
        true
    }
}

impl Eq for Template {}

impl Windows {
    /// Runs a script as it is printed.
    pub fn run(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if !line.starts_with('#') {
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: &str) {
        let words = words(line);
        let word = |place: usize| words.get(place).map_or("", String::as_str);
        match word(0) {
            "if" if line.starts_with("if (-not (Test-Path -LiteralPath ") => {
                let path = between(line, "New-Item -Path ", " -Force");
                self.keys.0.insert(path.to_lowercase());
            }
            "$reset" => assert!(line.contains("Get-Command Reset-Smb"), "{line}"),
            "if" if line.starts_with("if ($reset -and ") => {
                let noun = between(line, "{ Reset-", " -");
                let name = between(line, "ContainsKey('", "')");
                self.values.remove(&(object(&noun).to_owned(), name.to_lowercase()));
            }
            "Set-ItemProperty" => {
                let path = word(2).to_lowercase();
                assert!(self.keys.0.contains(&path), "there is no key {path}: {line}");
                assert_eq!(
                    (word(1), word(3), word(5), word(7)),
                    ("-LiteralPath", "-Name", "-Type", "-Value")
                );
                let value = format!("{} {}", word(6), words.get(8..).unwrap_or_default().join(" "));
                self.values.insert((path, word(4).to_lowercase()), value);
            }
            "Remove-ItemProperty" => {
                assert_eq!((word(1), word(3)), ("-LiteralPath", "-Name"), "{line}");
                self.values
                    .remove(&(word(2).to_lowercase(), word(4).replace('`', "").to_lowercase()));
            }
            "Set-SmbServerConfiguration" | "Set-SmbClientConfiguration" => {
                assert_eq!((words.len(), word(3)), (4, "-Force"), "{line}");
                let name = word(1).strip_prefix('-').unwrap().to_lowercase();
                let object = object(word(0).strip_prefix("Set-").unwrap());
                self.values.insert((object.to_owned(), name), word(2).to_owned());
            }
            "auditpol.exe" => self.audit(line),
            "Set-Content" => {
                let lines = between(line, "-Value @(", ")");
                self.template.0 = words_of_list(&lines);
            }
            "secedit.exe" => self.configure(line),
            _ => panic!("unknown command: {line}"),
        }
    }

    fn audit(&mut self, line: &str) {
        let of = between(line, "/set /subcategory:\"", "\"");
        let success = between(line, "/success:", " ");
        let failure = line.split("/failure:").nth(1).unwrap();
        for word in [success.as_str(), failure] {
            assert!(matches!(word, "enable" | "disable"), "{line}");
        }
        self.values.insert(("audit".to_owned(), of.to_lowercase()), format!("{success} {failure}"));
    }

    fn configure(&mut self, line: &str) {
        assert!(line.contains(r#"/cfg "$env:TEMP\smbscope.inf" /overwrite /areas "#), "{line}");
        let area = between(line, "/areas ", " /quiet");
        let mut section = String::new();
        for line in self.template.0.clone() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
                continue;
            }
            let wanted = match section.as_str() {
                "Unicode" | "Version" => continue,
                "Privilege Rights" => "USER_RIGHTS",
                _ => "SECURITYPOLICY",
            };
            assert_eq!(area, wanted, "{line}");
            let (name, value) = line.split_once('=').unwrap();
            let slot = format!("{section}\\{}", name.trim()).to_lowercase();
            self.values.insert(("template".to_owned(), slot), value.trim().to_owned());
        }
    }
}

fn object(noun: &str) -> &'static str {
    match noun {
        "SmbServerConfiguration" => "server",
        "SmbClientConfiguration" => "client",
        _ => panic!("unknown cmdlet: {noun}"),
    }
}

fn between(line: &str, from: &str, to: &str) -> String {
    let rest = line.split_once(from).unwrap_or_else(|| panic!("no `{from}` in: {line}")).1;
    let text = rest.split(to).next().unwrap();
    text.trim_matches('\'').to_owned()
}

/// Words of a command, without the quotes of verbatim strings.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted, mut is_any) = (String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (is_quoted, is_any) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if is_any {
                    words.push(std::mem::take(&mut word));
                }
                is_any = false;
            }
            c => {
                word.push(c);
                is_any = true;
            }
        }
    }
    assert!(!is_quoted, "a quote is open: {line}");
    if is_any {
        words.push(word);
    }
    words
}

/// Verbatim strings between commas.
fn words_of_list(text: &str) -> Vec<String> {
    let text = text.trim_matches('\'');
    text.split("', '").map(|item| item.replace("''", "'")).collect()
}
