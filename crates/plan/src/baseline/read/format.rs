//! What a file is, from its content.

use serde::{Deserialize, Serialize};

use super::{desired_state, lgpo, powershell, samba, security_template};
use crate::input::{text, xml};

/// Bytes that are looked at.
const PROBE_BYTES: usize = 256 << 10;

pub(super) const EXPECTED: &str = "a security template, registry.pol, a backup of a group policy (folder, .zip, .cab), \
    .PolicyRules, LGPO text, audit.csv, a list of HardeningKitty, ADMX or ADML, an export of the registry, the output of \
    Get-SmbServerConfiguration, Get-SmbClientConfiguration or Get-SmbShare (text, CSV, JSON or CliXML), smb.conf or the output of \
    testparm -s, MOF of DSC, tasks of Ansible (win_regedit), rules of Wazuh, or a settings catalogue of Intune (JSON)";

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    RegistryPol,
    SecurityTemplate,
    /// Backup.xml.
    GroupPolicyBackup,
    /// bkupInfo.xml and manifest.xml.
    BackupInfo,
    /// gpreport.xml.
    GroupPolicyReport,
    PolicyRules,
    LgpoText,
    AuditCsv,
    /// HardeningKitty.
    FindingList,
    /// ADMX.
    TemplateDefinitions,
    /// ADML.
    TemplateTexts,
    RegistryExport,
    /// Registry.xml of group policy preferences.
    Preferences,
    /// comment.cmtx.
    Comments,
    /// gpt.ini.
    VersionFile,
    /// Lists, tables, CSV and CliXML of Get-Smb*.
    PowerShell,
    /// The same by ConvertTo-Json.
    Json,
    SmbConf,
    /// Compiled configuration of PowerShell DSC.
    Mof,
    /// Tasks of `win_regedit`.
    Ansible,
    /// Security configuration assessment.
    Wazuh,
    /// Exported settings catalogue.
    Intune,
    Zip,
    Cabinet,
    Unrecognised,
}

pub(super) fn of(bytes: &[u8]) -> Format {
    if bytes.starts_with(b"PReg") {
        return Format::RegistryPol;
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Format::Zip;
    }
    if bytes.starts_with(b"MSCF") {
        return Format::Cabinet;
    }
    // Even, so that UTF-16 is not cut within a character.
    let probe = text::decode(bytes.get(..PROBE_BYTES).unwrap_or(bytes)).text;
    let probe = probe.trim_start();
    if probe.starts_with('<') {
        return xml::root_name(probe).map_or(Format::Unrecognised, |root| of_root(&root));
    }
    if probe.starts_with("Windows Registry Editor") || probe.starts_with("REGEDIT4") {
        return Format::RegistryExport;
    }
    let first = probe.lines().next().unwrap_or_default().to_ascii_lowercase();
    if first.contains("subcategory guid") || first.starts_with("machine name,policy target") {
        return Format::AuditCsv;
    }
    if first.starts_with("id,category,name,method") {
        return Format::FindingList;
    }
    if is_json(probe) {
        let is_intune = probe.contains("settingDefinitionId");
        return if is_intune { Format::Intune } else { Format::Json };
    }
    if let Some(format) = desired_state::recognise(probe) {
        return format;
    }
    if is_lgpo(probe) {
        return Format::LgpoText;
    }
    of_sections(probe)
}

fn of_root(root: &str) -> Format {
    match root {
        "PolicyRules" => Format::PolicyRules,
        "GroupPolicyBackupScheme" => Format::GroupPolicyBackup,
        "BackupInst" | "Backups" => Format::BackupInfo,
        "GPO" | "GPOS" | "report" | "Rsop" => Format::GroupPolicyReport,
        "policyDefinitions" => Format::TemplateDefinitions,
        "policyDefinitionResources" => Format::TemplateTexts,
        "RegistrySettings" => Format::Preferences,
        "policyComments" => Format::Comments,
        "Objs" => Format::PowerShell,
        _ => Format::Unrecognised,
    }
}

/// JSON begins with an object, or with an array of something; `[section]` is not one.
fn is_json(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('[') else { return text.starts_with('{') };
    rest.trim_start().starts_with(['{', ']', '[', '"'])
}

fn is_lgpo(text: &str) -> bool {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with([';', '#']));
    let first = lines.next().is_some_and(|line| lgpo::scope(line).is_some());
    let action = lines.nth(2).is_some_and(lgpo::is_action);
    first && action
}

/// Files of sections: a security template has known ones, smb.conf has known parameters.
fn of_sections(text: &str) -> Format {
    let mut sections = text.lines().filter_map(|line| {
        line.trim().strip_prefix('[')?.split_once(']').map(|(name, _)| name.trim())
    });
    let is_template = sections.clone().any(|section| {
        security_template::SECTIONS.iter().any(|known| section.eq_ignore_ascii_case(known))
            || section.eq_ignore_ascii_case("Unicode")
    });
    if is_template {
        return Format::SecurityTemplate;
    }
    let is_general = sections.next().is_some_and(|name| name.eq_ignore_ascii_case("General"));
    let has_version =
        || text.lines().any(|line| line.trim().to_ascii_lowercase().starts_with("version="));
    if is_general && has_version() {
        return Format::VersionFile;
    }
    if samba::is_smb_conf(text) {
        return Format::SmbConf;
    }
    if powershell::is_output(text) {
        return Format::PowerShell;
    }
    Format::Unrecognised
}
