//! PowerShell: `Set-SmbServerConfiguration`, `Set-SmbClientConfiguration`, `Set-SmbShare` and `Set-ItemProperty`, with
//! `auditpol.exe` for auditing and `secedit.exe` for lines of a security template.
//!
//! Texts become verbatim strings (about_Quoting_Rules); a character that is not ASCII becomes `[char]0x...`, because
//! Windows PowerShell reads a file without a mark in the machine's code page, where bytes of such a character may be
//! quotes. Names of properties must be words. `Remove-ItemProperty -Name` takes wildcards: they are escaped.

use super::super::setting::{Place, Scope, Setting, SmbObject, Value};
use super::{Unwritten, security_template};
use crate::script::quote::powershell;

/// Properties whose value in the registry has another name.
const VALUES: [(&str, &str); 10] = [
    ("AnnounceComment", "srvcomment"),
    ("AnnounceServer", "Lmannounce"),
    ("AutoDisconnectTimeout", "AutoDisconnect"),
    ("EnableBandwidthThrottling", "DisableBandwidthThrottling"),
    ("EnableLargeMtu", "DisableLargeMtu"),
    ("EnableLeasing", "DisableLeasing"),
    ("EnableMultiChannel", "DisableMultiChannel"),
    ("EnableSMB1Protocol", "SMB1"),
    ("EnableSMB2Protocol", "SMB2"),
    ("ServerHidden", "Hidden"),
];

/// The script, and what it cannot express.
pub(super) fn encode(settings: &[Setting]) -> (String, Vec<Unwritten>) {
    let mut script = String::new();
    let mut unwritten = Vec::new();
    for setting in settings {
        match command(setting) {
            Ok(command) => {
                script.push_str(&command);
                script.push_str("\r\n");
            }
            Err(why) => unwritten.push(Unwritten::new(setting, why)),
        }
    }
    (script, unwritten)
}

/// A text for a comment.
pub(super) fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect()
}

/// The lines that set it.
pub(super) fn command(setting: &Setting) -> Result<String, &'static str> {
    match &setting.place {
        Place::Smb { object, property } => smb(object, property, &setting.value),
        Place::Registry { scope, key, name } => registry(*scope, key, name, &setting.value),
        Place::Audit { subcategory } => audit(subcategory, &setting.value),
        Place::Template { section, name } => template(section, name, &setting.value),
        _ => Err("no command of this script sets it"),
    }
}

/// Auditing of a subcategory. Names are translated on other Windows; GUIDs are not.
fn audit(subcategory: &str, value: &Value) -> Result<String, &'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '/' | '{' | '}');
    if subcategory.is_empty() || subcategory.len() > 100 || !subcategory.chars().all(is_word) {
        return Err("not the name of a subcategory");
    }
    let number = match value {
        Value::Dword(number @ 0..=3) => *number,
        Value::Text(text) => match text.to_ascii_lowercase().as_str() {
            "none" | "no auditing" => 0,
            "success" => 1,
            "failure" => 2,
            "success and failure" => 3,
            _ => return Err("not a setting of auditing"),
        },
        Value::Delete => {
            return Err("auditing has no default to go back to: set its former value by hand");
        }
        _ => return Err("not a setting of auditing"),
    };
    let word = |bit: u32| if number & bit == bit { "enable" } else { "disable" };
    Ok(format!(
        "auditpol.exe /set /subcategory:\"{subcategory}\" /success:{} /failure:{}",
        word(1),
        word(2)
    ))
}

/// A line of a security template, by a template that has only this line.
fn template(section: &str, name: &str, value: &Value) -> Result<String, &'static str> {
    let area = match section.to_ascii_lowercase().as_str() {
        "event audit" | "system access" => "SECURITYPOLICY",
        "privilege rights" => "USER_RIGHTS",
        _ => return Err("secedit sets this section for a whole machine: do it by hand"),
    };
    let line = security_template::template_line(section, name, value)?;
    let section = format!("[{section}]");
    let lines = [
        "[Unicode]",
        "Unicode=yes",
        &section,
        &line,
        "[Version]",
        "signature=\"$CHICAGO$\"",
        "Revision=1",
    ];
    let lines: Result<Vec<_>, _> = lines.into_iter().map(string).collect();
    Ok(format!(
        "Set-Content -LiteralPath \"$env:TEMP\\smbscope.inf\" -Encoding Unicode -Value @({})\r\n\
         secedit.exe /configure /db \"$env:TEMP\\smbscope.sdb\" /cfg \"$env:TEMP\\smbscope.inf\" /overwrite /areas {area} /quiet",
        lines?.join(", ")
    ))
}

fn smb(object: &SmbObject, property: &str, value: &Value) -> Result<String, &'static str> {
    let is_word = property.starts_with(|c: char| c.is_ascii_alphabetic())
        && property.len() < 100
        && property.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_word {
        return Err("not the name of a property");
    }
    let (noun, service) = match object {
        SmbObject::Server => ("SmbServerConfiguration", "LanmanServer"),
        SmbObject::Client => ("SmbClientConfiguration", "LanmanWorkstation"),
        SmbObject::Share(share) => {
            let is_name = !share.is_empty()
                && !share.chars().any(|c| {
                    c.is_control() || matches!(c, '*' | '?' | '[' | ']' | '`' | '/' | '\\' | '"')
                });
            if !is_name {
                return Err("not the name of a share");
            }
            if *value == Value::Delete {
                return Err(
                    "a property of a share has no default to go back to: set its former value by hand",
                );
            }
            let (share, value) = (string(share)?, argument(value)?);
            return Ok(format!("Set-SmbShare -Name {share} -{property} {value} -Force"));
        }
    };
    if *value == Value::Delete {
        return Ok(reset(noun, service, property));
    }
    Ok(format!("Set-{noun} -{property} {} -Force", argument(value)?))
}

/// Back to the default: `Reset-*` (Windows Server 2025, Windows 11 24H2) has most properties, but not signing; without it
/// the value that the cmdlet sets is removed from the registry.
fn reset(noun: &str, service: &str, property: &str) -> String {
    let known = VALUES.iter().find(|(name, _)| name.eq_ignore_ascii_case(property));
    let value = known.map_or(property, |(_, value)| value);
    format!(
        "$reset = Get-Command Reset-{noun} -ErrorAction SilentlyContinue\r\n\
         if ($reset -and $reset.Parameters.ContainsKey('{property}')) {{ Reset-{noun} -{property} -Force }} \
         else {{ Remove-ItemProperty -LiteralPath 'HKLM:\\SYSTEM\\CurrentControlSet\\Services\\{service}\\Parameters' \
         -Name '{value}' -ErrorAction SilentlyContinue }}"
    )
}

/// A value of a property: flags and numbers as such, anything else as text.
fn argument(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::Text(text) if text.eq_ignore_ascii_case("true") => Ok("$true".to_owned()),
        Value::Text(text) if text.eq_ignore_ascii_case("false") => Ok("$false".to_owned()),
        Value::Text(text) => {
            let is_number = text.len() < 20
                && !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { Ok(text.clone()) } else { string(text) }
        }
        Value::Dword(number) => Ok(number.to_string()),
        Value::Qword(number) => Ok(number.to_string()),
        _ => Err("a property has flags, numbers and texts only"),
    }
}

fn registry(scope: Scope, key: &str, name: &str, value: &Value) -> Result<String, &'static str> {
    // The provider takes a slash for a backslash, and a name of this kind for the key's default value.
    let is_key =
        !key.is_empty() && !key.contains('/') && !key.starts_with('\\') && !key.ends_with('\\');
    if !is_key || name.eq_ignore_ascii_case("(default)") || name.starts_with("**") {
        return Err("a key or a name that Set-ItemProperty cannot reach");
    }
    let hive = match scope {
        Scope::Computer => "HKLM",
        Scope::User => "HKCU",
    };
    let path = string(&format!("{hive}:\\{key}"))?;
    let name = if name.is_empty() { "(default)" } else { name };
    if *value == Value::Delete {
        let name = string(&escape_wildcards(name))?;
        return Ok(format!(
            "Remove-ItemProperty -LiteralPath {path} -Name {name} -ErrorAction SilentlyContinue"
        ));
    }
    let list = |items: Vec<String>| {
        if items.is_empty() { "@()".to_owned() } else { format!("({})", items.join(",")) }
    };
    let (kind, data) = match value {
        // -Value converts to the signed types.
        Value::Dword(number) => ("DWord", format!("({})", number.cast_signed())),
        Value::Qword(number) => ("QWord", format!("([long]'{}')", number.cast_signed())),
        Value::Text(text) => ("String", string(text)?),
        Value::ExpandText(text) => ("ExpandString", string(text)?),
        Value::MultiText(texts) => {
            let texts: Result<Vec<String>, _> = texts.iter().map(|text| string(text)).collect();
            ("MultiString", format!("([string[]]{})", list(texts?)))
        }
        Value::Binary(bytes) => {
            ("Binary", format!("([byte[]]{})", list(bytes.iter().map(u8::to_string).collect())))
        }
        Value::CreateKey => return Ok(make_key(&path)),
        Value::DeleteValues | Value::DeleteNamed(_) => {
            return Err("removes more than one value: apply it with LGPO text or registry.pol");
        }
        _ => return Err("Set-ItemProperty has no form for this value"),
    };
    let name = string(name)?;
    let make = make_key(&path);
    Ok(format!(
        "{make}\r\nSet-ItemProperty -LiteralPath {path} -Name {name} -Type {kind} -Value {data}"
    ))
}

fn make_key(path: &str) -> String {
    format!(
        "if (-not (Test-Path -LiteralPath {path})) {{ New-Item -Path {path} -Force | Out-Null }}"
    )
}

fn escape_wildcards(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '`') {
            escaped.push('`');
        }
        escaped.push(c);
    }
    escaped
}

/// A text as an expression of ASCII.
fn string(text: &str) -> Result<String, &'static str> {
    if text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        return Err("a text with control characters");
    }
    let is_plain = |c: char| c.is_ascii() && !c.is_ascii_control();
    if text.chars().all(is_plain) {
        return Ok(powershell(text));
    }
    let mut parts: Vec<String> = Vec::new();
    let mut plain = String::new();
    for c in text.chars() {
        if is_plain(c) {
            plain.push(c);
            continue;
        }
        parts.push(powershell(&plain));
        plain.clear();
        let mut units = [0; 2];
        parts.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("[char]0x{unit:04X}")));
    }
    parts.push(powershell(&plain));
    Ok(format!("({})", parts.join(" + ")))
}
