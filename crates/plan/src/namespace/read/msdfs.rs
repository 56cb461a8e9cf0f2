//! Samba's msdfs: links of a share (symbolic links to `msdfs:server\share,server2\share2`), and `smb.conf`.
//!
//! Links come as lines `LINK<tab>msdfs:...`, as the output of `ls -l` or `ls -lR`, or as a script of `ln -s`. Samba's
//! `smb.conf(5)` (`msdfs root`, `msdfs proxy`) and `source3/smbd/msdfs.c` (`parse_msdfs_symlink`: alternatives are
//! separated by commas, both slashes are accepted).

use super::super::form::{Form, folded};
use super::super::model::{Kind, Link, Namespace, Target};
use super::{Context, Damage, Damaged, LINKS_MAX, Place, ReadNamespace, Reading, push_target};

/// The line that names the namespace of a list: `# msdfs of \\host\name`.
pub(crate) const HEADER: &str = "# msdfs of ";

/// A list of links as a file for [`super::read`], from the symbolic links of a share's folder: paths below it and what
/// they lead to. Links that are not Samba's are left out. The second part has those whose names no line can hold.
pub fn link_list(host: &str, name: &str, links: &[(String, String)]) -> (Vec<u8>, Vec<String>) {
    let mut text = format!("{HEADER}\\\\{host}\\{name}\n");
    let mut refused = Vec::new();
    for (path, target) in links.iter().filter(|(_, target)| target.starts_with("msdfs:")) {
        if path.chars().chain(target.chars()).any(char::is_control) {
            refused.push(path.clone());
        } else {
            text.push_str(&format!("{path}\t{target}\n"));
        }
    }
    (text.into_bytes(), refused)
}

/// The same in an `smb.conf`.
pub(crate) const CONF_HEADER: &str = "# smb.conf of ";

/// What the files say about Samba.
#[derive(Default)]
pub(super) struct Samba {
    shares: Vec<Share>,
    lists: Vec<List>,
    netbios_name: Option<String>,
}

struct Share {
    name: String,
    is_root: bool,
    proxy: Option<String>,
    comment: Option<String>,
    place: Place,
}

struct List {
    /// Host and name, if a header has them.
    path: Option<(String, String)>,
    stem: String,
    links: Vec<Link>,
    places: Vec<Place>,
    place: Place,
}

/// The targets in the text of a symbolic link.
pub(super) fn targets(text: &str) -> Result<Vec<Target>, String> {
    let list = text
        .strip_prefix("msdfs:")
        .ok_or_else(|| format!("the link leads to {text:?}, which does not begin with msdfs:"))?;
    let mut targets = Vec::new();
    for one in list.split(',') {
        let path = one.replace('/', "\\");
        let path = path.trim_start_matches('\\');
        let Some((server, share)) =
            path.split_once('\\').filter(|(a, b)| !a.is_empty() && !b.is_empty())
        else {
            return Err(format!("the target {one:?} of {text:?} is not server\\share"));
        };
        let target =
            Target { server: server.to_owned(), share: share.to_owned(), ..Target::default() };
        push_target(&mut targets, target)?;
    }
    Ok(targets)
}

pub(super) fn read_links(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let mut list = List {
        path: None,
        stem: context.stem().to_owned(),
        links: Vec::new(),
        places: Vec::new(),
        place: context.place(1),
    };
    let mut folder = String::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let trimmed = line.trim();
        // A link's name may begin like anything else.
        let is_link = line.contains("\tmsdfs:");
        if let Some(path) = trimmed.strip_prefix(HEADER).filter(|_| !is_link) {
            let (host, name) = path
                .strip_prefix("\\\\")
                .and_then(|path| path.split_once('\\'))
                .ok_or_else(|| Damage::new(number, format!("{path:?} is not \\\\host\\name")))?;
            list.path = Some((host.to_owned(), name.to_owned()));
            list.place = context.place(number);
            continue;
        }
        if trimmed.is_empty()
            || !is_link && (trimmed.starts_with('#') || trimmed.starts_with("total "))
        {
            continue;
        }
        let (name, target) = if let Some((name, target)) = line.split_once("\tmsdfs:") {
            (name.to_owned(), format!("msdfs:{target}"))
        } else if let Some((entry, target)) = line.split_once(" -> msdfs:") {
            (format!("{folder}{}", ls_name(entry)), format!("msdfs:{target}"))
        } else if let Some(rest) = trimmed.strip_prefix("ln ") {
            let words = shell_words(rest).map_err(|message| Damage::new(number, message))?;
            let mut words = words.into_iter().skip_while(|word| word.starts_with('-'));
            match (words.next(), words.next(), words.next()) {
                (Some(target), Some(name), None) => (name, target),
                _ => return Err(Damage::new(number, "ln without a target and a name")),
            }
        } else if let Some(path) =
            trimmed.strip_suffix(':').filter(|path| path.starts_with(['.', '/']))
        {
            // A folder of `ls -lR`.
            let path = path.trim_start_matches("./").trim_start_matches('.');
            folder = if path.is_empty() { String::new() } else { format!("{path}/") };
            continue;
        } else {
            let word = trimmed.split_whitespace().next().unwrap_or_default();
            let is_around =
                matches!(word, "mkdir" | "cd" | "set" | "umask" | "chmod" | "chown" | "exit")
                    || word.starts_with(['d', '-', 'l']) && word.len() == 10;
            if !is_around {
                context.note(number, line);
            }
            continue;
        };
        if list.links.len() >= LINKS_MAX {
            return Err(Damage::new(number, format!("more than {LINKS_MAX} links")));
        }
        let path = name.trim_start_matches("./").trim_matches(['/', '\\']).replace('/', "\\");
        if path.is_empty() {
            return Err(Damage::new(number, "a link without a name"));
        }
        let targets = targets(target.trim_end_matches('\r'))
            .map_err(|message| Damage::new(number, message))?;
        list.links.push(Link { path, targets, ..Link::default() });
        list.places.push(context.place(number));
    }
    context.samba.lists.push(list);
    Ok(())
}

/// The name at the end of a line of `ls -l`: behind the time.
fn ls_name(entry: &str) -> String {
    let Some(mode) = entry.split_whitespace().next() else { return entry.to_owned() };
    if !mode.starts_with('l') || mode.len() < 10 {
        return entry.trim().to_owned();
    }
    // Mode, links, owner, group, size, and the time: two or three words.
    let mut rest = entry.trim_start();
    let mut words = 0;
    while let Some((word, after)) = rest.split_once(char::is_whitespace) {
        let after = after.trim_start_matches([' ', '\t']);
        words += 1;
        rest = after;
        let is_time = word.contains(':') && words >= 6;
        let is_year = words == 8 && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_zone = words == 8 && word.starts_with(['+', '-']);
        if (is_time && !rest.starts_with(['+', '-'])) || is_year || is_zone {
            break;
        }
    }
    rest.to_owned()
}

/// Words of a shell's command, without expansions.
fn shell_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let piece = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(c) => piece.push(c),
                        None => return Err("a word without its closing quote".to_owned()),
                    }
                }
            }
            '"' => {
                let piece = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('$' | '`') => {
                            return Err(
                                "an expansion in a word; only literal words are read".to_owned()
                            );
                        }
                        Some('\\') => match letters.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => piece.push(c),
                            Some(c) => piece.extend(['\\', c]),
                            None => return Err("a word without its closing quote".to_owned()),
                        },
                        Some(c) => piece.push(c),
                        None => return Err("a word without its closing quote".to_owned()),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            '$' | '`' | '*' | '?' => {
                return Err(format!("the expansion {c} in a word; only literal words are read"));
            }
            ';' | '&' | '|' | '#' if word.is_none() => break,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

pub(super) fn read_conf(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let mut current: Option<Share> = None;
    let mut shares = Vec::new();
    let mut is_global = false;
    let mut continued = String::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let piece = line.trim();
        if let Some(start) = piece.strip_suffix('\\') {
            continued.push_str(start);
            continue;
        }
        let whole = format!("{continued}{piece}");
        continued.clear();
        if let Some(path) = whole.strip_prefix(CONF_HEADER) {
            let host = path.strip_prefix("\\\\").and_then(|path| path.split_once('\\'));
            context.samba.netbios_name = host.map(|(host, _)| host.to_owned());
            continue;
        }
        if whole.is_empty() || whole.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = whole.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            shares.extend(current.take());
            is_global = name.eq_ignore_ascii_case("global");
            if !is_global {
                current = Some(Share {
                    name: name.trim().to_owned(),
                    is_root: false,
                    proxy: None,
                    comment: None,
                    place: context.place(number),
                });
            }
            continue;
        }
        let Some((name, value)) = whole.split_once('=') else {
            return Err(Damage::new(number, format!("{whole:?} is not NAME = VALUE of smb.conf")));
        };
        // Samba ignores spaces and case in names.
        let name: String = name.chars().filter(|c| !c.is_whitespace()).collect();
        let value = value.trim();
        let is_yes = matches!(value.to_ascii_lowercase().as_str(), "yes" | "true" | "1" | "on");
        match (name.to_ascii_lowercase().as_str(), &mut current) {
            ("netbiosname", None) if is_global => {
                context.samba.netbios_name = Some(value.to_owned());
            }
            ("hostmsdfs", None) if is_global && !is_yes => {
                context
                    .note(number, "host msdfs = no: this server answers no request for a referral");
            }
            ("msdfsroot", Some(share)) => share.is_root = is_yes,
            ("msdfsproxy", Some(share)) => share.proxy = Some(value.to_owned()),
            ("comment", Some(share)) => share.comment = Some(value.to_owned()),
            _ => {}
        }
    }
    shares.extend(current);
    shares.retain(|share| share.is_root || share.proxy.is_some());
    if shares.is_empty() {
        return Err(Damage::new(
            1,
            "smb.conf without a share that has `msdfs root = yes` or `msdfs proxy`",
        ));
    }
    context.samba.shares.extend(shares);
    Ok(())
}

impl Samba {
    /// Puts lists of links and shares together, and adds the namespaces to the reading.
    pub(super) fn finish(self, reading: &mut Reading) {
        let mut shares: Vec<Option<Share>> = self.shares.into_iter().map(Some).collect();
        let mut roots = shares.iter().flatten().filter(|share| share.proxy.is_none());
        let only_root = match (roots.next(), roots.next()) {
            (Some(root), None) if self.lists.len() == 1 => Some(root.name.clone()),
            _ => None,
        };
        let host = self.netbios_name.unwrap_or_default();
        let whole = |namespace, place, link_places| ReadNamespace {
            namespace,
            form: Form::Msdfs,
            place,
            link_places,
            blob_bytes: None,
            root_servers_differ: Vec::new(),
        };
        for list in self.lists {
            let (own_host, name) = list.path.unwrap_or_else(|| {
                (host.clone(), only_root.clone().unwrap_or_else(|| list.stem.clone()))
            });
            let share = shares
                .iter_mut()
                .find(|share| {
                    share.as_ref().is_some_and(|share| folded(&share.name) == folded(&name))
                })
                .and_then(Option::take);
            let namespace = Namespace {
                host: own_host,
                name,
                kind: Some(Kind::Samba),
                comment: share.and_then(|share| share.comment),
                links: list.links,
                ..Namespace::default()
            };
            reading.namespaces.push(whole(namespace, list.place, list.places));
        }
        for share in shares.into_iter().flatten() {
            let mut namespace = Namespace {
                host: host.clone(),
                name: share.name,
                kind: Some(Kind::Samba),
                comment: share.comment,
                ..Namespace::default()
            };
            if let Some(proxy) = share.proxy {
                // Samba accepts \server\share here, without the prefix of links.
                let list = format!("msdfs:{}", proxy.trim_start_matches(['\\', '/']));
                match targets(&list) {
                    Ok(targets) => namespace.targets = targets,
                    Err(message) => reading.note(share.place, &message),
                }
                namespace.other.insert("msdfs:proxy".to_owned(), "yes".to_owned());
            }
            reading.namespaces.push(whole(namespace, share.place, Vec::new()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_are_read() {
        let words = shell_words(r#"-s -- 'msdfs:a\b' 'it'\''s' "x\"y" z\ z"#).unwrap();
        assert_eq!(words, ["-s", "--", r"msdfs:a\b", "it's", "x\"y", "z z"]);
        assert!(shell_words("'open").is_err());
        assert!(shell_words("\"$(rm)\"").is_err());
        assert!(shell_words("$x").is_err());
    }

    #[test]
    fn names_of_ls_are_found() {
        assert_eq!(ls_name("lrwxrwxrwx 1 root root 20 Nov  1 10:00 a b"), "a b");
        assert_eq!(ls_name("lrwxrwxrwx 1 root root 20 Nov  1  2023 a b"), "a b");
        assert_eq!(ls_name("lrwxrwxrwx 1 root root 20 2026-11-01 10:00 a b"), "a b");
        let full = "lrwxrwxrwx 1 root root 20 2026-11-01 10:00:00.000000000 +0100 a b";
        assert_eq!(ls_name(full), "a b");
    }
}
