//! `smbscope plan namespace rewrite`: other names, states and forms.

use std::path::PathBuf;
use std::time::Duration;

use smbscope_plan::namespace::difference::text;
use smbscope_plan::namespace::form::Form;
use smbscope_plan::namespace::model::State;
use smbscope_plan::namespace::rewrite::{
    Rules, ServerRule, StateRule, StateSubject, SuffixRule, read_map, rewrite,
};
use smbscope_plan::namespace::write::{Allowed, Lost, write};

use super::super::new_file;
use super::{bad, inputs};
use crate::exit::Failure;
use crate::options::{Reading, Verbosity, duration};
use crate::output::Output;

/// Rewrite a namespace: FQDNs, servers, TTLs, states, another form.
///
/// Prints what changes. What the new form cannot express stops it, unless --allow names it. Short names become FQDNs by a map
/// (--fqdn), by a suffix (--suffix) or by names that resolve (--hosts, --resolve); one that none of them has stops it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope plan namespace rewrite public.xml --suffix contoso.com --out rewritten.xml
  smbscope plan namespace rewrite public.xml --fqdn names.txt --server 'OLDFS=newfs.contoso.com' --to ldif-v2 --out new.ldif
  smbscope plan namespace rewrite public.ldif --to msdfs --allow priorities --out samba/
  smbscope plan namespace rewrite public.xml --link-ttl 300s --offline OLDFS --out quiet.xml")]
pub struct RewriteArgs {
    /// Files of one namespace.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// The new form: export-2003, export-2008, ldif-v1, ldif-v2, json, powershell, msdfs [default: that of the input; an
    /// export of 2003 becomes one of 2008].
    #[arg(long, value_name = "FORM", value_parser = form)]
    pub to: Option<Form>,
    /// Write the namespace to this file, msdfs to this folder. What exists is not replaced.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// FQDNs of short names: a file with lines SHORT FQDN.
    #[arg(long, value_name = "FILE")]
    pub fqdn: Option<PathBuf>,
    /// Suffix for short names: contoso.com, or fs-*=emea.contoso.com; can be repeated, the first that fits counts.
    #[arg(long, value_name = "SUFFIX", value_parser = SuffixRule::parse)]
    pub suffix: Vec<SuffixRule>,
    /// Names of domains: paths below them stay as they are. Known already are the namespace's host and the suffixes.
    #[arg(long, value_name = "DOMAIN,...", value_delimiter = ',')]
    pub domain: Vec<String>,
    /// FQDNs by the names of a hosts or zone file.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// FQDNs by this machine's resolver.
    #[arg(long, conflicts_with = "hosts")]
    pub resolve: bool,
    /// Move targets: OLD=NEW, or \\OLD\share=\\NEW\share; can be repeated.
    #[arg(long, value_name = "OLD=NEW", value_parser = ServerRule::parse)]
    pub server: Vec<ServerRule>,
    /// Rewrite targets of the root, too, not only those of links.
    #[arg(long)]
    pub with_root: bool,
    /// TTL of the root.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub root_ttl: Option<Duration>,
    /// TTL of all links.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub link_ttl: Option<Duration>,
    /// Targets on these servers become offline.
    #[arg(long, value_name = "SERVER,...", value_delimiter = ',')]
    pub offline: Vec<String>,
    /// Targets on these servers become online.
    #[arg(long, value_name = "SERVER,...", value_delimiter = ',')]
    pub online: Vec<String>,
    /// Domain or server in the path of the root.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// What may be lost, by the names that the refusal lists, or `all`.
    #[arg(long, value_name = "LOSS,...", value_delimiter = ',', value_parser = allowed)]
    pub allow: Vec<Loss>,
    /// How captures are read.
    #[command(flatten)]
    pub reading: Reading,
}

/// Something that may be lost, or everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    All,
    One(Lost),
}

fn allowed(text: &str) -> Result<Loss, String> {
    match (text, Lost::from_name(text)) {
        ("all", _) => Ok(Loss::All),
        (_, Some(lost)) => Ok(Loss::One(lost)),
        _ => Err("not a loss: the refusal of a rewrite lists their names".to_owned()),
    }
}

fn form(text: &str) -> Result<Form, String> {
    Form::from_name(text)
        .filter(|form| Form::WRITTEN.contains(form))
        .ok_or_else(|| format!("expected one of {}", Form::WRITTEN.map(Form::name).join(", ")))
}

/// Rewrites a namespace.
pub(super) fn run(args: &RewriteArgs, verbosity: Verbosity) -> anyhow::Result<()> {
    let reading = inputs::read(&args.inputs, &args.reading, &verbosity)?;
    let namespace = inputs::only(&reading)?;
    let from = reading.namespaces.first().map_or(Form::Export2008, |one| one.form);
    let seconds = |time: Option<Duration>| -> anyhow::Result<Option<u32>> {
        time.map(|time| u32::try_from(time.as_secs()).map_err(|_| bad("a TTL", "is too long")))
            .transpose()
    };
    let of = |servers: &[String], state: State| {
        let rule =
            move |name: &String| StateRule { subject: StateSubject::Server(name.clone()), state };
        servers.iter().map(rule).collect::<Vec<_>>()
    };
    let fqdn = match &args.fqdn {
        Some(path) => {
            let text = String::from_utf8_lossy(&inputs::bytes(path)?).into_owned();
            read_map(&text).map_err(|error| bad(path.display(), error))?
        }
        None => Default::default(),
    };
    let rules = Rules {
        fqdn,
        suffixes: args.suffix.clone(),
        domains: args.domain.clone(),
        resolution: inputs::resolution(args.hosts.as_deref(), args.resolve, &reading)?,
        servers: args.server.clone(),
        includes_root: args.with_root,
        root_ttl_s: seconds(args.root_ttl)?,
        link_ttl_s: seconds(args.link_ttl)?,
        states: [of(&args.offline, State::Offline), of(&args.online, State::Online)].concat(),
        host: args.host.clone(),
    };
    let rewritten = rewrite(namespace, &rules);
    for (short, names) in &rewritten.ambiguous {
        verbosity.say(&format!("{short}: several full names: {}", names.join(", ")));
    }
    for unused in &rewritten.unused {
        verbosity.say(&format!("{unused}: matches nothing"));
    }
    if !rewritten.domains.is_empty() {
        let names = rewritten.domains.join(", ");
        verbosity
            .say(&format!("kept, for they are domains: {names}; a server of that name: --fqdn"));
    }
    if !rewritten.unclear.is_empty() {
        return Err(Failure::usage(format!(
            "{}: a path below it has this namespace's name: name it by --domain if it is a domain, by --fqdn if it is a \
             server, or let DNS decide (--resolve, --hosts)",
            rewritten.unclear.join(", ")
        )));
    }
    if !rewritten.short_names.is_empty() {
        let names = rewritten.short_names.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!(
            "{} short names have no FQDN: {names}; add them to --fqdn, or give --suffix",
            rewritten.short_names.len()
        )));
    }
    let to = args.to.unwrap_or(match from {
        Form::Export2003 | Form::View => Form::Export2008,
        other => other,
    });
    let allowed = Allowed {
        all: args.allow.contains(&Loss::All),
        some: args
            .allow
            .iter()
            .filter_map(|loss| match loss {
                Loss::One(lost) => Some(*lost),
                Loss::All => None,
            })
            .collect(),
    };
    let written = write(&rewritten.namespace, to, &allowed)
        .map_err(|refusal| Failure::usage(format!("{refusal} (--allow NAME)")))?;
    for loss in &written.losses {
        verbosity.say(&format!("lost: {loss}"));
    }
    if let Some(out) = &args.out {
        match &written.files[..] {
            [one] => new_file(out, &one.bytes)?,
            files => {
                std::fs::create_dir_all(out).map_err(|error| bad(out.display(), error))?;
                for file in files {
                    new_file(&out.join(&file.name), &file.bytes)?;
                }
            }
        }
    }
    let mut output = Output::stdout();
    output.text(&if rewritten.changes.is_empty() {
        "no target, TTL or state changes\n".to_owned()
    } else {
        text(&rewritten.changes)
    })?;
    output.finish()
}
