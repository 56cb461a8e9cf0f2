//! Settings as files and as commands that apply them, each with its undo.

use std::path::Path;

use smbscope_plan::baseline::setting::{Place, Scope, Setting};
use smbscope_plan::baseline::terms::place_title;
use smbscope_plan::baseline::write::{
    FormerState, Unwritten, Written, group_policy_backup, lgpo, powershell, registry_pol,
    security_template, smb_conf,
};
use smbscope_plan::script::Step;

use super::super::{new_file, undo_path};
use crate::exit::Failure;

/// Writes settings and their undo; the extension is the form.
pub(super) fn write(path: &Path, settings: &[Setting], former: &FormerState) -> anyhow::Result<()> {
    let name = path.display();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let text = |written: Written<String>| {
        (written.apply.into_bytes(), written.undo.into_bytes(), written.unwritten)
    };
    let bytes = |written: Written<Vec<u8>>| (written.apply, written.undo, written.unwritten);
    if extension == "gpo" {
        return write_backup(path, settings, former);
    }
    let (apply, undo, unwritten) = match extension.as_str() {
        "pol" => bytes(registry_pol(settings, Scope::Computer, former)),
        "inf" => bytes(security_template(settings, former)),
        "txt" => text(lgpo(settings, former)),
        "ps1" => text(powershell(settings, former)),
        "conf" => text(smb_conf(settings, former)),
        _ => {
            return Err(Failure::usage(format!(
                "--write {name}: the form follows from the extension: .pol (registry.pol), .txt (LGPO text), .inf \
                 (security template), .gpo (folder with a backup of a group policy), .ps1 (PowerShell) or .conf (fragment of \
                 smb.conf)"
            )));
        }
    };
    refuse_nothing(path, settings, &unwritten)?;
    new_file(&undo_path(path), &undo)?;
    new_file(path, &apply)
}

/// Writes the folder of a backup of a group policy, and that of its undo next to it.
fn write_backup(path: &Path, settings: &[Setting], former: &FormerState) -> anyhow::Result<()> {
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    let now = chrono::Local::now().format("%Y-%m-%dT%H:%M:%S").to_string();
    let written = group_policy_backup(settings, former, &title, &now);
    refuse_nothing(path, settings, &written.unwritten)?;
    for (folder, files) in [(undo_path(path), &written.undo), (path.to_owned(), &written.apply)] {
        std::fs::create_dir(&folder).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::usage(format!(
                "{} exists already: remove it, or give another name",
                folder.display()
            )),
            _ => Failure::usage(format!("cannot write {}: {error}", folder.display())),
        })?;
        for (name, bytes) in files {
            let file = folder.join(name);
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent)?;
            }
            new_file(&file, bytes)?;
        }
    }
    Ok(())
}

/// Names the settings that a form cannot express; it is an error if these are all.
fn refuse_nothing(
    path: &Path,
    settings: &[Setting],
    unwritten: &[Unwritten],
) -> anyhow::Result<()> {
    let name = path.display();
    if unwritten.len() == settings.len() {
        let why = unwritten.first().map_or_else(
            || "there is no setting that touches file serving".to_owned(),
            |one| format!("none of the settings can be expressed in this form: {}", sentence(one)),
        );
        return Err(Failure::usage(format!("--write {name}: {why}")));
    }
    for one in unwritten {
        anstream::eprintln!("{name}: not written: {}", sentence(one));
    }
    Ok(())
}

fn sentence(one: &Unwritten) -> String {
    format!("{}: {}", place_title(&one.place), one.why)
}

/// Settings as commands: a fragment of smb.conf for Samba, PowerShell for Windows.
pub(super) fn blocks(title: &str, settings: &[Setting], former: &FormerState) -> Vec<Step> {
    let is_samba = |setting: &&Setting| matches!(setting.place, Place::Samba { .. });
    let (samba, windows): (Vec<_>, Vec<_>) =
        settings.iter().cloned().partition(|one| is_samba(&one));
    let lines = |text: &str| {
        let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut blocks = Vec::new();
    if !samba.is_empty() {
        let written = smb_conf(&samba, former);
        blocks.push(Step {
            does: format!("{title} (lines of smb.conf, then smbcontrol all reload-config)"),
            apply: lines(&written.apply),
            undo: lines(&written.undo),
            ..Step::default()
        });
    }
    if !windows.is_empty() {
        let written = powershell(&windows, former);
        blocks.push(Step {
            does: format!("{title} (PowerShell)"),
            apply: lines(&written.apply),
            undo: lines(&written.undo),
            ..Step::default()
        });
    }
    blocks.retain(|block| !block.apply.is_empty());
    blocks
}
