//! Desired states of tools that set or audit machines: MOF of PowerShell DSC, playbooks of Ansible, policies of Wazuh, settings
//! catalogues of Intune. Only what has a place of its own is read; all else is listed as unknown.
//!
//! DMTF DSP0004 (MOF); `MSFT_RegistryResource` and `MSFT_SmbServerConfiguration`; ansible.windows `win_regedit`; Wazuh "Security
//! configuration assessment"; Microsoft Graph `deviceManagementConfigurationPolicy` and the policy CSPs LanmanServer,
//! LanmanWorkstation and LocalPoliciesSecurityOptions.

use serde_json::Value as Json;

use super::super::catalogue;
use super::super::catalogue::place::PlaceKey;
use super::super::setting::{Place, SmbObject, Value};
use super::registry_data::hive;
use super::sink::Sink;
use crate::input::powershell::walk;

/// The form of a text, by what only it has.
pub(super) fn recognise(text: &str) -> Option<super::Format> {
    if text.contains("instance of MSFT_") {
        Some(super::Format::Mof)
    } else if text.contains("win_regedit") {
        Some(super::Format::Ansible)
    } else if text.contains(" -> ") && (text.contains("r:HKEY_") || text.contains("r:HKLM")) {
        Some(super::Format::Wazuh)
    } else {
        None
    }
}

/// A value of the registry in words, with the type if it is named.
fn value(text: &str, kind: &str) -> Value {
    let number = || match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match (kind.to_ascii_lowercase().as_str(), number()) {
        ("dword" | "reg_dword" | "", Some(number)) => Value::Dword(number),
        ("multistring" | "multi_string" | "reg_multi_sz", _) => {
            Value::MultiText(text.split(',').map(|one| one.trim().to_owned()).collect())
        }
        _ => Value::Text(text.to_owned()),
    }
}

fn registry(path: &str, name: &str, text: &str, kind: &str) -> Option<(Place, Value)> {
    let (scope, key) = hive(path)?;
    Some((Place::Registry { scope, key, name: name.to_owned() }, value(text, kind)))
}

/// `instance of CLASS as $x { Name = Value; ... };`
pub(super) fn mof(text: &str, sink: &mut Sink<'_>) {
    let (mut offset, mut counted, mut line) = (0, 0, 1_u64);
    while let Some(found) = text.get(offset..).and_then(|rest| rest.find("instance of ")) {
        let begin = offset + found + "instance of ".len();
        let Some(rest) = text.get(begin..) else { break };
        let before = text.get(counted..begin).unwrap_or_default();
        line += before.bytes().filter(|&byte| byte == b'\n').count() as u64;
        counted = begin;
        let class = rest.split_whitespace().next().unwrap_or_default();
        let Some((_, body)) = rest.split_once('{') else { break };
        let (properties, length) = properties(body);
        instance(class, &properties, line, sink);
        offset = begin + (rest.len() - body.len()) + length;
    }
}

/// Properties up to the closing brace of an instance, and the bytes that they take.
fn properties(body: &str) -> (Vec<(String, String)>, usize) {
    let (mut found, mut text, mut depth, mut is_quoted) = (Vec::new(), String::new(), 0, false);
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if is_quoted => text.extend(chars.next().map(|(_, c)| c)),
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => text.push(c),
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' => return (found, at + 1),
            ';' => {
                if let Some((name, value)) = text.split_once('=') {
                    found.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                text.clear();
            }
            c => text.push(c),
        }
    }
    (found, body.len())
}

fn instance(class: &str, properties: &[(String, String)], line: u64, sink: &mut Sink<'_>) {
    let get = |name: &str| {
        let found = properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    };
    match class {
        "MSFT_RegistryResource" => {
            let found = registry(get("Key"), get("ValueName"), get("ValueData"), get("ValueType"));
            match found {
                Some((place, _)) if get("Ensure").eq_ignore_ascii_case("absent") => {
                    sink.setting(line, place, Value::Delete);
                }
                Some((place, value)) => sink.setting(line, place, value),
                None => sink.unknown(
                    line,
                    get("Key"),
                    "a hive that is neither the computer's nor the user's",
                ),
            }
        }
        "MSFT_SmbServerConfiguration" => {
            let own = [
                "ResourceID",
                "IsSingleInstance",
                "ModuleName",
                "ModuleVersion",
                "ConfigurationName",
                "SourceInfo",
                "DependsOn",
            ];
            for (name, text) in properties.iter().filter(|(name, _)| !own.contains(&name.as_str()))
            {
                let place = Place::Smb { object: SmbObject::Server, property: name.clone() };
                sink.setting(line, place, Value::Text(text.clone()));
            }
        }
        other => sink.unknown(line, other, "a resource of DSC that is not read"),
    }
}

/// Tasks of `win_regedit`, with their parameters in lines of their own.
pub(super) fn ansible(text: &str, sink: &mut Sink<'_>) {
    let mut task: Option<(u64, Vec<(&str, &str)>)> = None;
    for (number, line) in (1_u64..).zip(text.lines()) {
        let line = line.trim();
        let parameter = line
            .split_once(':')
            .map(|(name, value)| (name.trim(), value.trim().trim_matches(['"', '\''])));
        if line.starts_with("- ") || line.contains("win_regedit") {
            end(task.take(), sink);
            task = line.contains("win_regedit").then(|| (number, Vec::new()));
        } else if let (Some((_, parameters)), Some(parameter)) = (&mut task, parameter) {
            parameters.push(parameter);
        }
    }
    end(task, sink);
}

fn end(task: Option<(u64, Vec<(&str, &str)>)>, sink: &mut Sink<'_>) {
    let Some((line, parameters)) = task else { return };
    let get = |names: &[&str]| {
        let found = parameters.iter().find(|(name, _)| names.contains(name));
        found.map_or("", |(_, value)| *value)
    };
    let (path, name) = (get(&["path", "key"]), get(&["name", "value", "entry"]));
    match registry(path, name, get(&["data"]), get(&["type", "datatype"])) {
        Some((place, _)) if get(&["state"]) == "absent" => sink.setting(line, place, Value::Delete),
        Some((place, value)) if !name.contains("{{") => sink.setting(line, place, value),
        _ => sink.unknown(line, path, "a task whose place is not written out"),
    }
}

/// Rules `r:KEY -> NAME -> VALUE`.
pub(super) fn wazuh(text: &str, sink: &mut Sink<'_>) {
    for (number, line) in (1_u64..).zip(text.lines()) {
        let rule = line.trim().trim_start_matches("- ").trim_matches(['"', '\'']);
        let Some(rest) = rule.strip_prefix("r:") else { continue };
        let parts: Vec<&str> = rest.split(" -> ").map(str::trim).collect();
        let found = match parts[..] {
            [path, name, text] if !text.contains([':', '^', '$', '|']) => {
                registry(path, name, text, "")
            }
            _ => None,
        };
        match found {
            Some((place, value)) => sink.setting(number, place, value),
            None => sink.unknown(number, rule, "a rule that does not name one value"),
        }
    }
}

/// Definitions of Intune, below `device_vendor_msft_policy_config_`, and the setting of the catalogue.
const INTUNE: [(&str, &str); 22] = [
    (
        "localpoliciessecurityoptions_microsoftnetworkserver_digitallysigncommunicationsalways",
        "server-signing",
    ),
    (
        "localpoliciessecurityoptions_microsoftnetworkserver_digitallysigncommunicationsifclientagrees",
        "server-signing-if-agreed",
    ),
    (
        "localpoliciessecurityoptions_microsoftnetworkclient_digitallysigncommunicationsalways",
        "client-signing",
    ),
    (
        "localpoliciessecurityoptions_microsoftnetworkclient_digitallysigncommunicationsifserveragrees",
        "client-signing-if-agreed",
    ),
    (
        "localpoliciessecurityoptions_microsoftnetworkclient_sendunencryptedpasswordtothirdpartysmbservers",
        "plaintext-password",
    ),
    ("localpoliciessecurityoptions_networksecurity_lanmanagerauthenticationlevel", "lm-level"),
    ("lanmanserver_auditclientdoesnotsupportencryption", "audit-no-encryption"),
    ("lanmanserver_auditclientdoesnotsupportsigning", "audit-no-signing"),
    ("lanmanserver_auditinsecureguestlogon", "audit-guests"),
    ("lanmanserver_authratelimiterdelayinms", "auth-delay"),
    ("lanmanserver_enableauthratelimiter", "auth-rate-limiter"),
    ("lanmanserver_enablemailslots", "mailslots"),
    ("lanmanserver_minsmb2dialect", "server-dialect-least"),
    ("lanmanserver_maxsmb2dialect", "server-dialect-most"),
    ("lanmanworkstation_enableinsecureguestlogons", "insecure-guest"),
    ("lanmanworkstation_requireencryption", "client-encryption"),
    ("lanmanworkstation_minsmb2dialect", "client-dialect-least"),
    ("lanmanworkstation_maxsmb2dialect", "client-dialect-most"),
    ("lanmanworkstation_blockntlm", "ntlm-blocked"),
    ("lanmanworkstation_auditinsecureguestlogon", "audit-client-guests"),
    ("lanmanworkstation_auditserverdoesnotsupportencryption", "audit-server-no-encryption"),
    ("lanmanworkstation_auditserverdoesnotsupportsigning", "audit-server-no-signing"),
];

/// An exported policy of the settings catalogue.
pub(super) fn intune(text: &str, sink: &mut Sink<'_>) {
    let json: Json = match serde_json::from_str(text) {
        Ok(json) => json,
        Err(error) => return sink.damage(error.line() as u64, error.to_string()),
    };
    let policy = json.get("name").and_then(Json::as_str).map(str::to_owned);
    let Ok(()) = walk(&json, &mut |_, member| {
        let Some(id) = member.get("settingDefinitionId").and_then(Json::as_str) else {
            return Ok::<_, std::convert::Infallible>(false);
        };
        match intune_setting(id, member) {
            Some((place, value)) => sink.setting_of(policy.clone(), 0, place, value),
            None => {
                sink.unknown(0, id, "a definition of Intune that is not about SMB, or not known")
            }
        }
        Ok(false)
    });
}

fn intune_setting(id: &str, member: &Json) -> Option<(Place, Value)> {
    let name = id.strip_prefix("device_vendor_msft_policy_config_")?;
    let (_, row) = INTUNE.iter().find(|(known, _)| *known == name)?;
    let row = catalogue::row(row)?;
    let choice = member.pointer("/choiceSettingValue/value").and_then(Json::as_str);
    let chosen =
        choice.and_then(|text| text.strip_prefix(id)?.strip_prefix('_')).map(str::to_owned);
    let simple = member.pointer("/simpleSettingValue/value").map(|value| match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    });
    let chosen = chosen.or(simple)?;
    let mut places = row.places.iter();
    let pattern = places.find(|place| matches!(place.key, PlaceKey::Registry { .. }))?;
    // The value of the definition is the one of the registry.
    let value = chosen.parse().map_or_else(|_| Value::Text(chosen.clone()), Value::Dword);
    Some((pattern.place(None)?, value))
}

#[cfg(test)]
mod tests {
    use super::super::super::catalogue::find;
    use super::super::{Format, NamedBytes, read};
    use super::*;

    fn settings(text: &str, format: Format) -> Vec<(String, Value)> {
        let baseline = read(&[NamedBytes { name: "x", bytes: text.as_bytes() }]).unwrap();
        assert_eq!(baseline.sources[0].format, format);
        let row = |place: &Place| find(place).map(|(row, _)| row.id.clone()).unwrap_or_default();
        baseline.settings.into_iter().map(|one| (row(&one.place), one.value)).collect()
    }

    #[test]
    fn resources_of_dsc_are_settings() {
        let text = "instance of MSFT_SmbServerConfiguration as $a\n{ ResourceID = \"[X]x\"; IsSingleInstance = \"Yes\"; \
            RequireSecuritySignature = True; EncryptData = True; ModuleName=\"ComputerManagementDsc\"; };\n\
            instance of MSFT_RegistryResource as $b\n{ Key=\"HKLM:\\\\SYSTEM\\\\CurrentControlSet\\\\Services\\\\LanmanServer\\\\Parameters\"; \
            ValueName=\"SMB1\"; ValueData={\"0\"}; ValueType=\"Dword\"; Ensure=\"Present\"; };\n";
        let text_of = |text: &str| Value::Text(text.to_owned());
        let expected = [
            ("server-signing".to_owned(), text_of("True")),
            ("server-encryption".to_owned(), text_of("True")),
            ("smb1-server".to_owned(), Value::Dword(0)),
        ];
        assert_eq!(settings(text, Format::Mof), expected);
    }

    #[test]
    fn tasks_and_rules_are_settings() {
        let key = r"SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters";
        let one = [("server-signing".to_owned(), Value::Dword(1))];
        let text = format!(
            "- name: signing\n  ansible.windows.win_regedit:\n    path: HKLM:\\{key}\n    name: RequireSecuritySignature\n    data: 1\n    type: dword\n- debug: msg=x\n"
        );
        assert_eq!(settings(&text, Format::Ansible), one);
        let text = format!(
            "checks:\n  - id: 27079\n    rules:\n      - 'r:HKEY_LOCAL_MACHINE\\{key} -> RequireSecuritySignature -> 1'\n"
        );
        assert_eq!(settings(&text, Format::Wazuh), one);
    }

    #[test]
    fn definitions_of_intune_are_settings_and_others_are_listed() {
        let id = |name: &str| format!("device_vendor_msft_policy_config_{name}");
        let signing = id(
            "localpoliciessecurityoptions_microsoftnetworkserver_digitallysigncommunicationsalways",
        );
        let text = format!(
            "{{\"name\":\"Servers\",\"settings\":[{{\"settingInstance\":{{\"settingDefinitionId\":\"{signing}\",\
             \"choiceSettingValue\":{{\"value\":\"{signing}_1\"}}}}}},{{\"settingInstance\":{{\"settingDefinitionId\":\"{}\"}}}}]}}",
            id("other_thing")
        );
        assert_eq!(
            settings(&text, Format::Intune),
            [("server-signing".to_owned(), Value::Dword(1))]
        );
        let baseline = read(&[NamedBytes { name: "x", bytes: text.as_bytes() }]).unwrap();
        assert_eq!(baseline.unknown.count(), 1);
        for (_, row) in INTUNE {
            assert!(catalogue::row(row).is_some(), "{row}");
        }
    }

    #[test]
    fn json_of_something_else_is_refused_by_name() {
        let error =
            read(&[NamedBytes { name: "x.json", bytes: b"{\"a\": {\"b\": 1}}" }]).unwrap_err();
        assert!(error.message.contains("no settings of Get-Smb"), "{error}");
    }
}
