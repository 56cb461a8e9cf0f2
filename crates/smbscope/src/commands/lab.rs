//! `smbscope lab`: a private Samba, by `smbscope_lab`. Owns its output.

pub mod args;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use smbscope_client::clock::Clock;
use smbscope_client::{ClientError, Config, Credential, Host, Session, Target};
use smbscope_lab::{self as lab, LabError, Removed, Running, State, USER_PATTERN, default_dir};
use smbscope_report::format;

use crate::exit::{Code, Failure};
use crate::format::{Align, Column, TextFormat, lines};
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::measure::runtime;

use args::{Conf, Down, Lab, LabCommand, Status, Up};

/// How long the share is waited for, in each step of a logon.
const SHARE_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts, ends, lists or shows.
pub fn run(args: &Lab, verbosity: Verbosity) -> anyhow::Result<()> {
    match &args.command {
        LabCommand::Up(args) => up(args),
        LabCommand::Down(args) => down(args, verbosity),
        LabCommand::Status(args) => status(args, verbosity),
        LabCommand::Conf(args) => conf(args),
    }
}

fn up(args: &Up) -> anyhow::Result<()> {
    let options = args.options().map_err(coded_any)?;
    let running = lab::Lab::up(&options).map_err(coded)?;
    if interrupt::asked() {
        // It came up in spite of Ctrl-C: it is not wanted.
        lab::Lab::down(&running.dir).map_err(coded)?;
        return interrupt::check();
    }
    check_share(&running)?;
    let password = if args.users.show_password { Some(running.password()?) } else { None };
    let mut output = Output::stdout();
    let text = match args.format {
        TextFormat::Text => up_text(&running, password.as_deref(), &output),
        TextFormat::Json => format!("{:#}\n", up_json(&running, password)),
    };
    output.text(&text)?;
    output.finish()
}

/// Ends a lab that answers and has no share, for example because a module of `vfs objects` is not installed.
fn check_share(running: &Running) -> anyhow::Result<()> {
    // Its clients are in another network.
    if running.line.is_some() {
        return Ok(());
    }
    let target = Target {
        host: running.address.to_string(),
        port: running.port,
        share: running.share.clone(),
        folder: String::new(),
    };
    let credential = Credential::new(&running.user(1), &running.password().map_err(coded)?);
    let (runtime, _) = runtime(1)?;
    let connected = runtime.block_on(async {
        let host = Host::find(target, Config::default(), Clock::start(), false).await?;
        let connecting = Session::connect(SHARE_TIMEOUT, Arc::new(host), &credential, 0, None);
        let session = connecting.await.map_err(|failed| failed.error)?;
        session.close().await;
        Ok(())
    });
    // Whether its users may use it in the way they want is another question.
    let Err(error @ ClientError::Share { .. }) = connected else { return Ok(()) };
    let useless = running.useless(&format!("smbd runs, but {error}"));
    lab::Lab::down(&running.dir).map_err(coded)?;
    Err(coded(useless))
}

fn up_text(lab: &Running, password: Option<&str>, output: &Output) -> String {
    let (bold, end) = output.bold();
    let free = lab.free_bytes().map_or_else(|_| "unknown".to_owned(), format::bytes);
    let mut facts = vec![
        ("share", format!("{}, {free} free in {}", lab.location(), lab.share_dir().display())),
        (
            "users",
            format!(
                "{} to {}, domain {}, with the rights of the system user {}",
                lab.user(1),
                lab.user(lab.users),
                lab.domain(),
                lab.owner
            ),
        ),
        (
            "password",
            match password {
                Some(password) => format!("{password} for all"),
                None => format!("one for all, in {}", lab.password_file().display()),
            },
        ),
    ];
    if let Some(line) = &lab.line {
        let (client, options) = (line.client(), &line.options);
        facts.push(("line", format!("{options}, between the server and the namespace {client}")));
    }
    if !lab.settings.is_empty() {
        facts.push(("settings", lab.settings.join("; ")));
    }
    if !lab.pipes {
        let why = "not served: this Samba came without samba-dcerpcd and rpcd_*";
        facts.push(("share lists", why.to_owned()));
    }
    facts.push(("log", lab.log_file().display().to_string()));
    let pid = lab.smbd_pid().unwrap_or_default();
    let mut text = format!(
        "{bold}Samba {} runs on {}, port {}{end} (process {pid})\n\n",
        lab.samba, lab.address, lab.port
    );
    for (name, fact) in facts {
        text.push_str(&format!("  {name:<11}  {fact}\n"));
    }
    text.push_str(&format!("\n{bold}Next{end}\n"));
    for command in next(lab) {
        text.push_str(&format!("  {command}\n"));
    }
    text
}

/// Commands to type next, as a shell reads them.
fn next(lab: &Running) -> Vec<String> {
    let shown = |path: &Path| quoted(&path.display().to_string());
    let address = quoted(&format!("//{}/{}", lab.address, lab.share));
    let smbclient =
        format!("smbclient {address} -p {} -A {}", lab.port, shown(&lab.credentials_file()));
    let (here, dir) = if same_folder(&lab.dir) {
        (String::new(), String::new())
    } else {
        (format!(" {}", shown(&lab.dir)), format!(" --dir {}", shown(&lab.dir)))
    };
    let load = format!("smbscope load prepare --users {} --lab{here}", lab.users);
    let down = format!("smbscope lab down{dir}");
    let inside = |command: String| match &lab.line {
        Some(line) => format!("ip netns exec {} {command}", line.client()),
        None => command,
    };
    vec![inside(smbclient), load, down]
}

fn same_folder(dir: &Path) -> bool {
    let default = default_dir();
    // Above the lab's folder there may be links; the lab has resolved them.
    let real = |path: &Path| path.canonicalize().ok();
    default == dir || real(&default).is_some_and(|default| Some(default) == real(dir))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:+@,".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

fn up_json(lab: &Running, password: Option<String>) -> Value {
    let mut value = record_json(lab);
    value["password_file"] = json!(lab.password_file());
    value["credentials_file"] = json!(lab.credentials_file());
    value["log_file"] = json!(lab.log_file());
    value["share_dir"] = json!(lab.share_dir());
    value["free_bytes"] = json!(lab.free_bytes().ok());
    if let Some(password) = password {
        value["password"] = json!(password);
    }
    value
}

fn record_json(record: &lab::Record) -> Value {
    json!({
        "dir": record.dir,
        "samba": record.samba,
        "smbd": record.smbd,
        "pid": record.smbd_pid(),
        "address": record.address,
        "port": record.port,
        "share": record.share,
        "location": record.location(),
        "users": record.users,
        "user_pattern": USER_PATTERN,
        "domain": record.domain(),
        "owner": record.owner,
        "settings": record.settings,
        "share_lists": record.pipes,
        "line": record.line.as_ref().map(|line| json!({
            "options": line.options,
            "client_namespace": line.client(),
        })),
    })
}

fn down(args: &Down, verbosity: Verbosity) -> anyhow::Result<()> {
    let removed = lab::Lab::down(&args.folder.path()).map_err(coded)?;
    verbosity.say(&down_text(&removed));
    Ok(())
}

fn down_text(removed: &Removed) -> String {
    let dir = removed.dir.display();
    let processes = match removed.processes {
        0 => "its processes had ended already".to_owned(),
        1 => "1 process ended".to_owned(),
        more => format!("{more} processes ended"),
    };
    let rest = match (removed.dir_removed, removed.left.as_slice()) {
        (true, _) => "the folder is gone".to_owned(),
        (false, []) => "the folder, which was there before, is empty".to_owned(),
        (false, [first, more @ ..]) => {
            let name = first.display();
            let others =
                if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            format!("{name}{others} is not the lab's and stays")
        }
    };
    let inside = match removed.inside.as_slice() {
        [] => String::new(),
        ids => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!("; still running in its namespaces, now without network: {}", ids.join(" "))
        }
    };
    format!("{dir}: lab removed; {processes}; {rest}{inside}")
}

fn status(args: &Status, verbosity: Verbosity) -> anyhow::Result<()> {
    let labs = match &args.folder.dir {
        Some(dir) => vec![lab::Lab::status(dir).map_err(coded)?],
        None => lab::Lab::list(&default_dir()),
    };
    let mut output = Output::stdout();
    match args.format {
        TextFormat::Json => {
            let labs = labs.iter().map(|lab| {
                let mut value = record_json(&lab.record);
                value["state"] = json!(state(lab.state));
                value["processes"] = json!(lab.processes);
                value["connections"] = json!(lab.connections);
                value["line_runs"] = json!(lab.line_runs);
                value
            });
            let labs = json!({ "labs": labs.collect::<Vec<_>>() });
            output.text(&format!("{labs:#}\n"))?;
        }
        TextFormat::Text if labs.is_empty() => {
            verbosity.say("no lab runs; `smbscope lab up` starts one");
        }
        TextFormat::Text => output.text(&status_text(&labs, &output))?,
    }
    output.finish()
}

fn status_text(labs: &[lab::Status], output: &Output) -> String {
    let columns = [
        ("state", Align::Left),
        ("share", Align::Left),
        ("pid", Align::Right),
        ("samba", Align::Left),
        ("users", Align::Right),
        ("connections", Align::Right),
        ("line", Align::Left),
        ("folder", Align::Left),
    ];
    let columns = columns.map(|(title, align)| Column { title: title.into(), align });
    let rows = labs.iter().map(|lab| {
        let record = &lab.record;
        vec![
            state(lab.state).to_owned(),
            format::sanitized(&record.location()),
            record.smbd_pid().map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            format::sanitized(&record.samba),
            record.users.to_string(),
            lab.connections.to_string(),
            line_text(lab),
            format::sanitized(&record.dir.display().to_string()),
        ]
    });
    let (bold, end) = output.bold();
    lines(&columns, &rows.collect::<Vec<_>>(), (bold, end))
}

fn line_text(lab: &lab::Status) -> String {
    let Some(line) = &lab.record.line else { return "-".to_owned() };
    let dead = if lab.line_runs == Some(true) { "" } else { " (dead)" };
    format!(
        "{}{dead}, from {}",
        format::sanitized(&line.options),
        format::sanitized(&line.client())
    )
}

fn state(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Starting => "starting",
        State::Dead => "dead",
    }
}

fn conf(args: &Conf) -> anyhow::Result<()> {
    let text = lab::Lab::configuration(&args.folder.path()).map_err(coded)?;
    let mut output = Output::stdout();
    output.text(&text)?;
    output.finish()
}

/// The exit code of what went wrong.
fn coded(error: LabError) -> anyhow::Error {
    let code = match &error {
        LabError::NotALab { .. } => Code::Input,
        error if error.is_usage() => Code::Usage,
        error if error.is_folder() => Code::Output,
        _ => Code::Runtime,
    };
    Failure::new(code, error.to_string()).into()
}

fn coded_any(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<LabError>() {
        Ok(error) => coded(error),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::code_of;
    use std::path::PathBuf;

    #[test]
    fn what_stays_is_told() {
        let mut removed = Removed {
            dir: PathBuf::from("/lab"),
            processes: 5,
            dir_removed: true,
            left: Vec::new(),
            inside: Vec::new(),
        };
        assert_eq!(down_text(&removed), "/lab: lab removed; 5 processes ended; the folder is gone");
        removed.dir_removed = false;
        assert!(down_text(&removed).contains("was there before"));
        removed.left = vec![PathBuf::from("/lab/mine"), PathBuf::from("/lab/other")];
        assert!(down_text(&removed).ends_with("/lab/mine and 1 more is not the lab's and stays"));
        removed.inside = vec![7, 8];
        assert!(down_text(&removed).ends_with("now without network: 7 8"));
    }

    #[test]
    fn errors_have_their_codes() {
        let dir = PathBuf::from("/lab");
        assert_eq!(code_of(&coded(LabError::NotALab { dir: dir.clone() })), Code::Input);
        assert_eq!(code_of(&coded(LabError::Option("no".into()))), Code::Usage);
        let folder = LabError::Folder { dir, why: "no".into() };
        assert_eq!(code_of(&coded(folder)), Code::Output);
        let missing = LabError::NoSmbd { place: "in PATH".into() };
        assert_eq!(code_of(&coded(missing)), Code::Runtime);
        let setting = smbscope_lab::parse_setting("path=/").unwrap_err();
        assert_eq!(code_of(&coded_any(setting.into())), Code::Usage);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("/tmp/smbscope-lab-0/password"), "/tmp/smbscope-lab-0/password");
        assert_eq!(quoted("//127.0.0.1/Work Share"), "'//127.0.0.1/Work Share'");
    }
}
