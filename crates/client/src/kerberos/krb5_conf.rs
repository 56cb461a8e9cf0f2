//! The parts of krb5.conf that a logon needs: the default realm, and the KDCs of each realm.
//!
//! Source: krb5.conf(5) of MIT Kerberos. It does not own `[domain_realm]` (`sspi` reads that itself)
//! nor `include`, and sends no DNS queries: `--kdc` and `--realm` replace those.

use std::io::Read as _;
use std::path::PathBuf;

use super::kdc::KdcAddress;

/// The environment variable that lists the files, separated by colons.
const VARIABLE: &str = "KRB5_CONFIG";
const DEFAULT_FILE: &str = "/etc/krb5.conf";
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Contents of the files. Earlier files take precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Krb5Conf {
    /// `[libdefaults] default_realm`.
    pub default_realm: Option<String>,
    /// `[realms] REALM = { kdc = HOST }`, in order.
    kdcs: Vec<(String, KdcAddress)>,
    /// The files, including those that do not exist.
    files: Vec<PathBuf>,
}

impl Krb5Conf {
    /// Reads the files that `$KRB5_CONFIG` lists, or /etc/krb5.conf. A file that cannot be read counts
    /// as empty.
    pub fn of_environment() -> Krb5Conf {
        let files = match std::env::var_os(VARIABLE) {
            Some(files) => std::env::split_paths(&files).collect(),
            None => vec![PathBuf::from(DEFAULT_FILE)],
        };
        Krb5Conf::of_files(files)
    }

    /// Reads these files.
    pub fn of_files(files: Vec<PathBuf>) -> Krb5Conf {
        let mut conf = Krb5Conf::default();
        for path in &files {
            let Ok(file) = std::fs::File::open(path) else { continue };
            let mut bytes = Vec::new();
            if file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).is_ok() {
                conf.add(&String::from_utf8_lossy(&bytes));
            }
        }
        conf.files = files;
        conf
    }

    /// The KDCs of a realm.
    pub fn kdcs(&self, realm: &str) -> Vec<KdcAddress> {
        let of_realm = self.kdcs.iter().filter(|(name, _)| name.eq_ignore_ascii_case(realm));
        of_realm.map(|(_, kdc)| kdc.clone()).collect()
    }

    /// The names of the files, for an error.
    pub fn shown(&self) -> String {
        let names: Vec<_> = self.files.iter().map(|path| path.display().to_string()).collect();
        names.join(", ")
    }

    /// Takes the settings of one file; those of earlier files stay.
    pub fn add(&mut self, text: &str) {
        let mut section = "";
        // The groups that enclose the line: `REALM = {`.
        let mut groups: Vec<&str> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                section = name.trim();
                groups.clear();
                continue;
            }
            if line.starts_with('}') {
                groups.pop();
                continue;
            }
            let Some((name, value)) = line.split_once('=') else { continue };
            let (name, value) = (name.trim().trim_end_matches('*'), value.trim());
            match (section, groups.as_slice(), name) {
                (_, _, name) if value == "{" => groups.push(name),
                ("libdefaults", [], "default_realm") if self.default_realm.is_none() => {
                    self.default_realm = Some(value.to_owned());
                }
                ("realms", [realm], "kdc") => {
                    // A KDC proxy over HTTPS is not an address; the realm may have other KDCs.
                    let kdcs =
                        value.split_whitespace().filter_map(|kdc| KdcAddress::parse(kdc).ok());
                    self.kdcs.extend(kdcs.map(|kdc| ((*realm).to_owned(), kdc)));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "
# comment
[libdefaults]
    default_realm = LAB.TEST
    kdc_timeout = 3
[realms]
    LAB.TEST = {
        kdc = kdc1.lab.test
        kdc = https://proxy.lab.test/KdcProxy
        kdc = 10.0.0.2:8888
        v4_name_convert = {
            host = {
                kdc = no
            }
        }
        admin_server = kdc1.lab.test
    }
    OTHER.TEST = {
        kdc* = [::1]:750
    }
[domain_realm]
    .lab.test = LAB.TEST
    kdc = nothing
";

    fn read(texts: &[&str]) -> Krb5Conf {
        let mut conf = Krb5Conf::default();
        texts.iter().for_each(|text| conf.add(text));
        conf
    }

    fn shown(kdcs: Vec<KdcAddress>) -> Vec<String> {
        kdcs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn realms_and_their_kdcs_are_read() {
        let conf = read(&[SAMPLE]);
        assert_eq!(conf.default_realm.as_deref(), Some("LAB.TEST"));
        assert_eq!(shown(conf.kdcs("lab.test")), ["kdc1.lab.test:88", "10.0.0.2:8888"]);
        assert_eq!(shown(conf.kdcs("OTHER.TEST")), ["[::1]:750"]);
        assert_eq!(shown(conf.kdcs("NOWHERE")), [""; 0]);
    }

    #[test]
    fn the_first_file_wins() {
        let conf = read(&["[libdefaults]\ndefault_realm=FIRST", SAMPLE]);
        assert_eq!(conf.default_realm.as_deref(), Some("FIRST"));
    }

    #[test]
    fn broken_files_say_less() {
        for end in 0..SAMPLE.len() {
            let conf = read(&[SAMPLE.get(..end).unwrap_or_default()]);
            assert!(conf.kdcs.len() <= 3);
        }
        assert_eq!(read(&["}\n}\n= {\n[", "[realms\nkdc = a\n]"]), Krb5Conf::default());
    }

    #[test]
    fn files_that_are_not_there_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("krb5.conf");
        std::fs::write(&here, SAMPLE).unwrap();
        let conf = Krb5Conf::of_files(vec!["/nowhere/krb5.conf".into(), here.clone()]);
        assert_eq!(conf.kdcs("LAB.TEST").len(), 2);
        assert_eq!(conf.shown(), format!("/nowhere/krb5.conf, {}", here.display()));
    }
}
