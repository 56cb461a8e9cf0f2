//! `smbscope man`: manual pages, generated from the help texts.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::cli::{Cli, Man as Args};
use crate::exit::{Code, Failure};
use crate::output::Output;

/// Writes the main page, or all pages into a folder.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        return write(Output::stdout(), command);
    };
    std::fs::create_dir_all(dir).with_context(|| {
        Failure::new(Code::Output, format!("{}: cannot create the folder", dir.display()))
    })?;
    // Commands of commands (`smbscope lab start`) have pages of their own.
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        commands.extend(shown.filter(|sub| sub.get_name() != "help").cloned());
        write_file(dir, command)?;
    }
    Ok(())
}

fn write_file(dir: &Path, command: Command) -> anyhow::Result<()> {
    let name = Man::new(command.clone()).get_filename();
    write(Output::file(&dir.join(name))?, command)
}

/// Writes one page. The end of the help text (examples, exit codes) becomes sections of its own.
fn write(mut output: Output, command: Command) -> anyhow::Result<()> {
    let watch = output.watch();
    let is_main = command.has_subcommands();
    let ending = command.get_after_long_help().or(command.get_after_help());
    let ending = ending.map(|text| text.to_string());
    let page = Man::new(command.clone()).manual("smbscope manual");
    let mut write = || -> std::io::Result<()> {
        page.render_title(&mut output)?;
        page.render_name_section(&mut output)?;
        page.render_synopsis_section(&mut output)?;
        page.render_description_section(&mut output)?;
        page.render_options_section(&mut output)?;
        if is_main {
            page.render_subcommands_section(&mut output)?;
        }
        match &ending {
            Some(text) => output.write_all(sections(text).as_bytes()),
            None => Ok(()),
        }
    };
    watch.check(write())?;
    output.finish()
}

/// Converts blocks of a line `Title:` and the lines below it to roff sections; line breaks are kept.
fn sections(text: &str) -> String {
    let mut page = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            if !page.is_empty() {
                page.push_str(".fi\n");
            }
            let title = if title == "Exit codes" { "Exit status" } else { title };
            page.push_str(&format!(".SH {}\n.nf\n", title.to_uppercase()));
        } else if !line.is_empty() {
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            // roff takes a line that begins with one of these characters for a request.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            page.push_str(&format!("{guard}{line}\n"));
        }
    }
    if !page.is_empty() {
        page.push_str(".fi\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_s_ending_becomes_sections() {
        let page = sections("Exit codes:\n    0  ok\n\nEnvironment:\n  A\\B  --x\n");
        assert_eq!(
            page,
            ".SH EXIT STATUS\n.nf\n    0  ok\n.fi\n.SH ENVIRONMENT\n.nf\n  A\\eB  \\-\\-x\n.fi\n"
        );
    }
}
