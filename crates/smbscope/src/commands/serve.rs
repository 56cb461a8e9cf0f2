//! `smbscope serve`: recordings in a browser.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use smbscope_serve::{About, Data, Site};

use crate::answer::{VERSION, names};
use crate::cli::Serve;
use crate::exit::Failure;
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::serve::Served;
use crate::settings;
use crate::subprocess::program;

/// How often it is asked whether to end.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Answers a browser until Ctrl-C.
pub fn run(args: &Serve, verbosity: Verbosity) -> anyhow::Result<()> {
    allowed(args.listen, args.plain_http)?;
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer.clone())?;
    args.filter.apply_to_any(&mut source, &verbosity)?;
    let words = args.filter.words(&source);
    let inputs = &args.decode.inputs;
    let noticed = settings::get().noticed(args.noticed);
    // The server's threads end with the program, without being asked: the folder is deleted here.
    let (served, _made) = Served::new(&source, inputs, words, noticed.0, &verbosity)?;
    args.filter.refuse_nothing(&source)?;
    drop(source);
    let about = About {
        inputs: names(inputs, tokenizer.as_ref()),
        version: VERSION.to_owned(),
        ..About::default()
    };
    let mut data = Data::open(Box::new(served), about)?;
    data.about.clock = args.filter.clock(data.start_ns());
    let site = Site::bind(args.listen, args.hosts.clone(), data)?;
    let url = site.url();
    site.start()?;
    let mut output = Output::stdout();
    output.text(&format!("{url}\n"))?;
    output.finish()?;
    let _page = (!args.no_browser).then(|| open(&url, verbosity)).flatten();
    verbosity
        .say("Ctrl-C ends it. Everybody on this machine who has the address can read everything.");
    while !interrupt::asked() {
        std::thread::sleep(POLL_EVERY);
    }
    Ok(())
}

/// Other machines reach an address only on request: everybody on the way can read the token and the data.
fn allowed(address: SocketAddr, is_plain_allowed: bool) -> anyhow::Result<()> {
    if address.ip().is_loopback() || is_plain_allowed {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--listen {address}: other machines reach this address, and the page is sent without encryption; use a tunnel \
         (ssh -L 8080:127.0.0.1:8080 HOST) or a proxy with TLS in front of 127.0.0.1, or allow it with --plain-http"
    )))
}

/// Opens the browser. The address goes through a file that only this user can read: other users of this machine see the
/// arguments of programs. The file must stay as long as the browser may read it.
fn open(url: &str, verbosity: Verbosity) -> Option<tempfile::NamedTempFile> {
    let opened = || -> anyhow::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix("smbscope-").suffix(".html").tempfile()?;
        writeln!(
            file,
            "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">smbscope</a>"
        )?;
        file.flush()?;
        let (name, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
            ("open", &[])
        } else if cfg!(windows) {
            ("cmd.exe", &["/c", "start", ""])
        } else {
            ("xdg-open", &[])
        };
        let program = program(name).with_context(|| format!("{name} is not there"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg(file.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // It may end at once, or with the browser.
        std::thread::spawn(move || child.wait());
        Ok(file)
    };
    opened()
        .map_err(|error| {
            verbosity.say(&format!("no browser could be opened ({error:#}): open the address"))
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_let_in_on_request_only() {
        for (address, is_loopback) in [
            ("127.0.0.1:0", true),
            ("127.9.9.9:80", true),
            ("[::1]:0", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("192.0.2.1:80", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(allowed(address, false).is_ok(), is_loopback, "{address}");
            assert!(allowed(address, true).is_ok());
        }
    }
}
