//! A backup of a group policy: a folder that `Import-GPO` and the group policy console import.
//!
//! Owns which file holds which setting, and the two descriptions of the backup (`bkupInfo.xml`, `Backup.xml`). The files are
//! those of the other forms: registry.pol, GptTmpl.inf, and audit.csv (MS-GPAC 2.2.1). Settings below the keys of policies
//! go to registry.pol, because the console shows them there; other values of the registry are security options.
//!
//! MS-GPOL 2.2.4 (extension lists), MS-GPSB, MS-GPREG; the descriptions as the backups of Microsoft's baselines have them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use super::super::setting::{Place, Scope, Setting, Value};
use super::{Unwritten, registry_pol, security_template};

/// A file of a backup: its path with slashes, and its content.
pub type BackupFile = (String, Vec<u8>);

const MACHINE: &str = "DomainSysvol/GPO/Machine";
const USER: &str = "DomainSysvol/GPO/User";
/// Files of a half, below its folder: the path in the backup, and the path that the description gives for it.
const POL: &str = "registry.pol";
const TEMPLATE: &str = "microsoft/windows nt/SecEdit/GptTmpl.inf";
const AUDIT: &str = "microsoft/windows nt/Audit/audit.csv";

/// Client-side extensions with the tool that edits them: registry, security, auditing.
const REGISTRY: &str =
    "[{35378EAC-683F-11D2-A89A-00C04FBBCFA2}{D02B1F72-3407-48AE-BA88-E8213C6761F1}]";
const SECURITY: &str =
    "[{827D319E-6EAC-11D2-A4EA-00C04F79F83A}{803E14A0-B4FB-11D0-A0D0-00A0C90F574B}]";
const AUDITING: &str =
    "[{F3CCC681-B74C-4060-9F26-CD84525DCA2A}{0F3F3735-573D-9804-99E4-AB2A69BA5FD4}]";

/// Authenticated Users apply and read, ENTERPRISE DOMAIN CONTROLLERS read, SYSTEM writes (MS-DTYP 2.4.6). An import takes
/// the permissions of the policy that it imports into.
const DESCRIPTOR: &str = "01 00 04 9c 00 00 00 00 00 00 00 00 00 00 00 00 14 00 00 00 04 00 6c 00 04 00 00 00 \
     05 02 28 00 00 01 00 00 01 00 00 00 8f fd ac ed b3 ff d1 11 b4 1d 00 a0 c9 68 f9 39 01 01 00 00 00 00 00 05 0b 00 00 00 \
     00 02 14 00 94 00 02 00 01 01 00 00 00 00 00 05 09 00 00 00 00 02 14 00 94 00 02 00 01 01 00 00 00 00 00 05 0b 00 00 00 \
     00 02 14 00 ff 00 0f 00 01 01 00 00 00 00 00 05 12 00 00 00";

/// A domain that no network has (RFC 2606): an import names the domain that it imports into.
const DOMAIN: &str = "backup.invalid";

/// The files of a backup of this name and time (`2026-11-29T16:00:00`), and what it cannot hold.
pub fn encode(settings: &[Setting], name: &str, time: &str) -> (Vec<BackupFile>, Vec<Unwritten>) {
    let parts = Parts::of(settings);
    let mut unwritten = parts.unwritten.clone();
    let mut files = Vec::new();
    let mut add = |path: String, settings: &[Setting], made: (Vec<u8>, Vec<Unwritten>)| {
        // What a form refuses is not a file of its own.
        if made.1.len() < settings.len() {
            files.push((path, made.0));
        }
        unwritten.extend(made.1);
    };
    let machine = registry_pol::encode(&parts.computer, Scope::Computer);
    add(format!("{MACHINE}/{POL}"), &parts.computer, machine);
    let template = security_template::encode(&parts.template);
    add(format!("{MACHINE}/{TEMPLATE}"), &parts.template, template);
    add(format!("{MACHINE}/{AUDIT}"), &parts.audit, audit(&parts.audit));
    add(format!("{USER}/{POL}"), &parts.user, registry_pol::encode(&parts.user, Scope::User));
    let (policy, backup) = (guid(settings, 1), guid(settings, 2));
    let description = description(&files, &policy, name);
    files.push(("Backup.xml".to_owned(), description.into_bytes()));
    let info = info(&policy, &backup, name, time);
    files.push(("bkupInfo.xml".to_owned(), info.into_bytes()));
    let files = files.into_iter().map(|(path, bytes)| (format!("{backup}/{path}"), bytes));
    (files.collect(), unwritten)
}

/// Settings by file.
#[derive(Default)]
struct Parts {
    computer: Vec<Setting>,
    user: Vec<Setting>,
    template: Vec<Setting>,
    audit: Vec<Setting>,
    unwritten: Vec<Unwritten>,
}

impl Parts {
    fn of(settings: &[Setting]) -> Self {
        let mut parts = Self::default();
        for setting in settings {
            let part = match &setting.place {
                Place::Registry { scope: Scope::User, .. } => &mut parts.user,
                Place::Registry { key, .. } if is_security_option(key, setting) => {
                    &mut parts.template
                }
                Place::Registry { .. } => &mut parts.computer,
                Place::Template { .. } => &mut parts.template,
                Place::Audit { subcategory } if is_guid(subcategory) => &mut parts.audit,
                Place::Audit { .. } => {
                    let why = "a policy names auditing by its GUID, which is not known";
                    parts.unwritten.push(Unwritten::new(setting, why));
                    continue;
                }
                _ => {
                    let why = "not a setting of a group policy: write .ps1 or .conf";
                    parts.unwritten.push(Unwritten::new(setting, why));
                    continue;
                }
            };
            part.push(setting.clone());
        }
        parts
    }
}

/// Whether a value of the registry goes to the security template: not a policy's, and one that a template can hold.
fn is_security_option(key: &str, setting: &Setting) -> bool {
    let key = key.to_ascii_lowercase();
    let is_policy = key.split('\\').any(|part| part == "policies") && key.starts_with("software\\");
    !is_policy && security_template::encode(std::slice::from_ref(setting)).1.is_empty()
}

fn is_guid(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inner.is_some_and(|inner| {
        inner.split('-').map(str::len).eq([8, 4, 4, 4, 12])
            && inner.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    })
}

fn audit(settings: &[Setting]) -> (Vec<u8>, Vec<Unwritten>) {
    let mut text = "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\r\n".to_owned();
    let mut unwritten = Vec::new();
    for setting in settings {
        let words = ["No Auditing", "Success", "Failure", "Success and Failure"];
        let value = match setting.value {
            Value::Dword(number @ 0..=3) => words.get(number as usize).map(|word| (number, *word)),
            _ => None,
        };
        match (&setting.place, value) {
            (Place::Audit { subcategory }, Some((number, word))) => {
                text.push_str(&format!(",System,,{subcategory},{word},,{number}\r\n"));
            }
            _ => unwritten.push(Unwritten::new(setting, "not a setting of auditing")),
        }
    }
    (text.into_bytes(), unwritten)
}

/// A GUID of this content, in the form of version 4: the same settings have the same.
fn guid(settings: &[Setting], salt: u64) -> String {
    let half = |part: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, part).hash(&mut hasher);
        settings.iter().for_each(|one| (&one.place, &one.value).hash(&mut hasher));
        hasher.finish()
    };
    let (high, low) = (half(0), half(1));
    format!(
        "{{{:08X}-{:04X}-4{:03X}-{:04X}-{:012X}}}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        0x8000 | low >> 48 & 0x3fff,
        low & 0xffff_ffff_ffff
    )
}

fn cdata(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    format!("<![CDATA[{}]]>", text.replace("]]>", "]] >"))
}

fn info(policy: &str, backup: &str, name: &str, time: &str) -> String {
    let element = |tag: &str, text: &str| format!("<{tag}>{}</{tag}>", cdata(text));
    let elements = [
        ("GPOGuid", policy),
        ("GPODomain", DOMAIN),
        ("GPODomainGuid", "{00000000-0000-0000-0000-000000000000}"),
        ("GPODomainController", DOMAIN),
        ("BackupTime", time),
        ("ID", backup),
        ("Comment", "by smbscope plan baseline"),
        ("GPODisplayName", name),
    ];
    let elements: String = elements.iter().map(|(tag, text)| element(tag, text)).collect();
    format!(
        "<BackupInst xmlns=\"http://www.microsoft.com/GroupPolicy/GPOOperations/Manifest\">{elements}</BackupInst>"
    )
}

fn description(files: &[BackupFile], policy: &str, name: &str) -> String {
    let has = |path: &str| files.iter().any(|(file, _)| file == path);
    let machine = |file: &str| has(&format!("{MACHINE}/{file}"));
    let list = |extensions: &[(bool, &str)]| -> String {
        let used = extensions.iter().filter(|(is_used, _)| *is_used);
        used.map(|(_, list)| *list).collect()
    };
    let of_machine = list(&[
        (machine(POL), REGISTRY),
        (machine(TEMPLATE), SECURITY),
        (machine(AUDIT), AUDITING),
    ]);
    let of_user = list(&[(has(&format!("{USER}/{POL}")), REGISTRY)]);
    // Both halves of a version count changes; a half without settings has none.
    let version = |is_used: bool, step: u32| if is_used { step } else { 0 };
    let source = format!("\\\\{DOMAIN}\\sysvol\\{DOMAIN}\\Policies\\{policy}");
    let file = |half: &str, variable: &str, file: &str, more: &str| {
        if !has(&format!("DomainSysvol/GPO/{half}/{file}")) {
            return String::new();
        }
        let file = file.replace('/', "\\");
        format!(
            "<FSObjectFile bkp:Path=\"%{variable}%\\{file}\" bkp:SourceExpandedPath=\"{source}\\{half}\\{file}\"{more} \
             bkp:Location=\"DomainSysvol\\GPO\\{half}\\{file}\"/>"
        )
    };
    let registry =
        file("Machine", "GPO_MACH_FSPATH", POL, "") + &file("User", "GPO_USER_FSPATH", POL, "");
    let validated = " bkp:ReEvaluateFunction=\"SecurityValidateSettings\"";
    let security = file("Machine", "GPO_MACH_FSPATH", TEMPLATE, validated);
    let auditing = file("Machine", "GPO_MACH_FSPATH", AUDIT, "");
    let extension = |id: &str, title: &str, files: &str| {
        if files.is_empty() {
            return String::new();
        }
        format!(
            "<GroupPolicyExtension bkp:ID=\"{id}\" bkp:DescName=\"{title}\">{files}</GroupPolicyExtension>"
        )
    };
    let extensions = extension("{35378EAC-683F-11D2-A89A-00C04FBBCFA2}", "Registry", &registry)
        + &extension("{827D319E-6EAC-11D2-A4EA-00C04F79F83A}", "Security", &security)
        + &extension("{F15C46CD-82A0-4C2D-A210-5D0D3182A418}", "Unknown Extension", &auditing);
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><GroupPolicyBackupScheme bkp:version=\"2.0\" bkp:type=\"GroupPolicyBackupTemplate\" \
         xmlns:bkp=\"http://www.microsoft.com/GroupPolicy/GPOOperations\" xmlns=\"http://www.microsoft.com/GroupPolicy/GPOOperations\">\
         <GroupPolicyObject><SecurityGroups/><FilePaths/><GroupPolicyCoreSettings><ID>{}</ID><Domain>{}</Domain>\
         <SecurityDescriptor>{DESCRIPTOR}</SecurityDescriptor><DisplayName>{}</DisplayName><Options>{}</Options>\
         <UserVersionNumber>{}</UserVersionNumber><MachineVersionNumber>{}</MachineVersionNumber>\
         <MachineExtensionGuids>{}</MachineExtensionGuids><UserExtensionGuids>{}</UserExtensionGuids><WMIFilter/>\
         </GroupPolicyCoreSettings>{extensions}</GroupPolicyObject></GroupPolicyBackupScheme>",
        cdata(policy),
        cdata(DOMAIN),
        cdata(name),
        cdata("0"),
        cdata(&version(!of_user.is_empty(), 65_537).to_string()),
        cdata(&version(!of_machine.is_empty(), 65_537).to_string()),
        cdata(&of_machine),
        cdata(&of_user)
    )
}
