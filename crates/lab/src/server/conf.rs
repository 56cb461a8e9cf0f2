//! smb.conf of a lab: every path is in the lab's folder, so that nothing of the system's Samba is read
//! or written, and options become lines.
//!
//! Source: smb.conf(5) of Samba 4.17 and 4.22. The accounts behind it are in `accounts`.

use std::fmt::Write as _;

use super::error::LabError;
use super::options::{Cipher, Dialect, Encryption, Options, Signing, SigningAlgorithm, WORKGROUP};
use super::paths::Paths;

/// Settings that the lab makes itself, because its own folder, port and users depend on them. `--set`
/// must not point a private Samba at the system's files. Spelled as Samba compares names: without
/// spaces, in lower case; including synonyms.
const RESERVED: [&str; 39] = [
    "binddnsdir",
    "bindinterfacesonly",
    "cachedir",
    "cachedirectory",
    "configbackend",
    "configfile",
    "copy",
    "debuglevel",
    "directory",
    "guestaccount",
    "include",
    "interfaces",
    "lockdir",
    "lockdirectory",
    "logfile",
    "loglevel",
    "logging",
    "ncalrpcdir",
    "netbiosname",
    "passdbbackend",
    "path",
    "piddir",
    "piddirectory",
    "privatedir",
    "privatedirectory",
    "readonly",
    "registryshares",
    "rpcstartondemandhelpers",
    "serverrole",
    "smbpasswdfile",
    "smbports",
    "statedirectory",
    "syslog",
    "usernamemap",
    "usernamemapscript",
    "usersharepath",
    "usersharemaxshares",
    "winbinddsocketdirectory",
    "workgroup",
];

/// The system user that smbd works as, and the users it serves.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    /// System user whose rights all users get.
    pub owner: String,
    /// System user of guests; never the owner, whom smbd would take for a guest.
    pub guest: String,
}

/// The text of smb.conf. `own_rpc`: named pipes are served by helpers that the lab starts (or by none),
/// not by those that smbd finds in its installation.
pub(super) fn text(
    options: &Options,
    paths: &Paths,
    port: u16,
    accounts: &Accounts,
    own_rpc: bool,
) -> String {
    let dir = |name: &str| paths.dir.join(name).display().to_string();
    let mut text = String::from(
        "# A private Samba, made by `smbscope lab up`; `smbscope lab down` removes it.\n[global]\n",
    );
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name} = {value}");
    };
    for (name, value) in [
        ("workgroup", WORKGROUP),
        ("netbios name", "SMBSCOPE-LAB"),
        ("server string", "smbscope lab"),
        ("server role", "standalone server"),
        ("map to guest", "never"),
        ("guest account", &accounts.guest),
        ("bind interfaces only", "yes"),
        ("interfaces", &interfaces(options)),
        ("smb ports", &port.to_string()),
        ("disable netbios", "yes"),
        ("load printers", "no"),
        ("printing", "bsd"),
        ("printcap name", "/dev/null"),
        ("disable spoolss", "yes"),
        ("usershare max shares", "0"),
        ("max log size", "0"),
        ("log level", &options.log_level.to_string()),
        ("log file", &paths.smbd_log().display().to_string()),
        ("username map", &paths.users_map().display().to_string()),
        ("passdb backend", &format!("smbpasswd:{}/smbpasswd", dir("private"))),
        ("private dir", &dir("private")),
        ("binddns dir", &dir("private")),
        ("lock directory", &dir("lock")),
        ("state directory", &dir("state")),
        ("cache directory", &dir("cache")),
        ("pid directory", &dir("pid")),
        ("ncalrpc dir", &dir("ncalrpc")),
        ("winbindd socket directory", &dir("private")),
    ] {
        line(name, value);
    }
    if own_rpc {
        line("rpc start on demand helpers", "no");
    }
    for (name, value) in protocol(options) {
        line(name, &value);
    }
    for (name, value) in &options.set {
        line(name, value);
    }
    let _ = write!(
        text,
        "[{}]\n  path = {}\n  read only = no\n",
        options.share,
        paths.share().display()
    );
    text
}

/// The addresses on which smbd listens, and what it says of them; entries with a speed are quoted.
fn interfaces(options: &Options) -> String {
    if options.interfaces.is_empty() {
        return options.address.to_string();
    }
    let entries = options.interfaces.iter();
    entries.map(|entry| format!("\"{entry}\"")).collect::<Vec<_>>().join(" ")
}

/// The lines that follow from the options.
fn protocol(options: &Options) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("server min protocol", options.dialect_min.conf().to_owned()),
        ("server max protocol", options.dialect_max.conf().to_owned()),
        ("server signing", options.signing.conf().to_owned()),
        ("server smb encrypt", options.encryption.conf().to_owned()),
        // Durable handles and leases need it, and only this smbd uses the files.
        ("kernel oplocks", "no".to_owned()),
        ("kernel share modes", "no".to_owned()),
        ("posix locking", "no".to_owned()),
    ];
    let algorithms = options.signing_algorithms.iter().map(|a| SigningAlgorithm::conf(*a));
    let ciphers = options.ciphers.iter().map(|c| Cipher::conf(*c));
    for (name, values) in [
        ("server smb3 signing algorithms", algorithms.collect::<Vec<_>>()),
        ("server smb3 encryption algorithms", ciphers.collect()),
    ] {
        if !values.is_empty() {
            lines.push((name, values.join(", ")));
        }
    }
    let on_off = |on: bool| if on { "yes" } else { "no" }.to_owned();
    for (name, wanted) in [
        ("oplocks", options.oplocks),
        ("smb2 leases", options.leases),
        ("smb3 directory leases", options.directory_leases),
        ("server multi channel support", options.multichannel),
        ("durable handles", options.durable),
    ] {
        lines.extend(wanted.map(|on| (name, on_off(on))));
    }
    for name in ["aio read size", "aio write size"] {
        lines.extend(options.aio.map(|on| (name, u8::from(on).to_string())));
    }
    lines.extend(options.connections_most.map(|most| ("max smbd processes", most.to_string())));
    lines
}

/// Reads `NAME = VALUE` of `--set`.
pub fn parse_setting(text: &str) -> Result<(String, String), LabError> {
    let wrong = |why: &str| Err(LabError::Option(format!("--set {text:?}: {why}")));
    let Some((name, value)) = text.split_once('=') else {
        return wrong("expected \"NAME = VALUE\", as in smb.conf");
    };
    let (name, value) = (name.trim(), value.trim());
    if text.chars().any(char::is_control) || value.ends_with('\\') {
        return wrong("it must be one line");
    }
    if name.is_empty() || name.starts_with(['[', '#', ';']) {
        return wrong("the name of a setting is missing");
    }
    let compared: String = name.split_whitespace().collect::<String>().to_lowercase();
    if RESERVED.contains(&compared.as_str()) {
        return wrong("the lab sets this itself, to stay separate from the system's Samba");
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// The settings that Samba rejected, from smbd's messages when it read smb.conf.
pub(super) fn refused(said: &str) -> Option<String> {
    ["Unknown parameter encountered", "Ignoring unknown parameter", "Ignoring invalid value"]
        .iter()
        .find_map(|sign| said.lines().find(|line| line.contains(sign)))
        .map(|line| line.trim().to_owned())
}

/// The options on one line, for people: only differences from Samba's defaults.
pub(super) fn summary(options: &Options) -> Vec<String> {
    let plain = Options::default();
    let mut parts = Vec::new();
    let range = (options.dialect_min, options.dialect_max);
    if range != (plain.dialect_min, plain.dialect_max) {
        parts.push(match range {
            (low, high) if low == high => format!("SMB {low}"),
            (low, high) => format!("SMB {low} to {high}"),
        });
    }
    let list = |names: Vec<String>| {
        if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
    };
    let algorithms = list(options.signing_algorithms.iter().map(ToString::to_string).collect());
    if options.signing != Signing::Auto || !algorithms.is_empty() {
        parts.push(format!("signing {}{algorithms}", options.signing));
    }
    let ciphers = list(options.ciphers.iter().map(ToString::to_string).collect());
    if options.encryption != Encryption::Off || !ciphers.is_empty() {
        parts.push(format!("encryption {}{ciphers}", options.encryption));
    }
    for (name, wanted) in [
        ("oplocks", options.oplocks),
        ("leases", options.leases),
        ("directory leases", options.directory_leases),
        ("multichannel", options.multichannel),
        ("durable handles", options.durable),
        ("aio", options.aio),
    ] {
        parts.extend(wanted.map(|on| format!("{name} {}", if on { "on" } else { "off" })));
    }
    parts.extend(options.connections_most.map(|most| format!("at most {most} connections")));
    parts.extend(options.set.iter().map(|(name, value)| format!("{name} = {value}")));
    if options.dialect_min == Dialect::Smb1 {
        parts.push("SMB1 is on".to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn conf(options: &Options) -> String {
        let paths = Paths { dir: PathBuf::from("/tmp/lab") };
        let accounts = Accounts { owner: "nobody".into(), guest: "daemon".into() };
        text(options, &paths, 4450, &accounts, true)
    }

    #[test]
    fn every_path_is_in_the_lab() {
        for line in conf(&Options::default()).lines().filter(|line| line.contains(" = ")) {
            let (_, value) = line.split_once(" = ").unwrap();
            let path = value.strip_prefix("smbpasswd:").unwrap_or(value);
            let inside = path.starts_with("/tmp/lab/") || path == "/dev/null";
            assert!(!path.starts_with('/') || inside, "{line}");
        }
    }

    #[test]
    fn options_become_lines() {
        let options = Options {
            signing: Signing::Required,
            signing_algorithms: vec![SigningAlgorithm::AesCmac, SigningAlgorithm::HmacSha256],
            encryption: Encryption::Desired,
            ciphers: vec![Cipher::Aes256Gcm],
            dialect_min: Dialect::Smb210,
            dialect_max: Dialect::Smb302,
            directory_leases: Some(true),
            aio: Some(false),
            connections_most: Some(9),
            set: vec![("strict sync".into(), "no".into())],
            share: "work".into(),
            ..Options::default()
        };
        let text = conf(&options);
        for line in [
            "server signing = mandatory",
            "server smb3 signing algorithms = AES-128-CMAC, HMAC-SHA256",
            "server smb encrypt = desired",
            "server smb3 encryption algorithms = AES-256-GCM",
            "server min protocol = SMB2_10",
            "server max protocol = SMB3_02",
            "smb3 directory leases = yes",
            "aio write size = 0",
            "max smbd processes = 9",
            "strict sync = no",
            "rpc start on demand helpers = no",
        ] {
            assert!(text.contains(&format!("  {line}\n")), "{line}: {text}");
        }
        assert!(text.ends_with("[work]\n  path = /tmp/lab/share\n  read only = no\n"));
        assert!(!text.contains("durable handles"), "what was not asked for is Samba's");
        assert_eq!(summary(&Options::default()), [] as [String; 0]);
        assert!(summary(&options).join(", ").contains("signing required (aes-cmac, hmac-sha256)"));
    }

    #[test]
    fn settings_cannot_leave_the_lab() {
        assert_eq!(parse_setting("strict sync=no").unwrap(), ("strict sync".into(), "no".into()));
        let parametric = parse_setting("fruit:metadata = stream").unwrap();
        assert_eq!(parametric.0, "fruit:metadata");
        for text in ["Lock Directory = /var", "include=/etc/smb.conf", "nothing", "a = b\nc = d"]
            .iter()
            .chain(&["a = b\\", " = x", "[global]=", "lockDIR = /x", "smb ports = 445"])
        {
            assert!(parse_setting(text).unwrap_err().is_usage(), "{text}");
        }
    }

    #[test]
    fn refused_settings_are_found() {
        let said = "[2026] x\n  Unknown parameter encountered: \"strikt sync\"\n";
        assert!(refused(said).unwrap().contains("strikt"));
        assert_eq!(refused("all is well"), None);
    }
}
