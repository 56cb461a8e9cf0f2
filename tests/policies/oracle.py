#!/usr/bin/env python3
"""Settings of policy files, read without any code of smbscope: oracle.py FILE... prints JSON, one object for each file.

It reads the same bytes in another way (regular expressions over UTF-16, xml.etree, csv, shlex, zipfile) and prints what
crates/plan/src/baseline/setting.rs says about places and values, so that crates/plan/tests/policies.rs can compare both
setting by setting. The standard library only.

{"FILE": {"format": "registry_pol", "settings": [[PLACE, VALUE, POLICY or null], ...], "unknown": N}}

Templates have their policies or texts instead of settings.
"""

import csv
import io
import json
import re
import shlex
import struct
import sys
import xml.etree.ElementTree as ElementTree


def registry(scope, key, name):
    return {"registry": {"scope": scope, "key": key.strip("\\"), "name": name}}


def template(section, name):
    return {"template": {"section": section, "name": name}}


def audit(subcategory):
    return {"audit": {"subcategory": subcategory}}


def number(text):
    value = int(text.strip(), 0) if text.strip().lower().startswith("0x") else int(text)
    return {"dword": value & 0xFFFFFFFF}


def repaired(text):
    """Undoes UTF-8 that was decoded byte by byte."""
    if text.isascii():
        return text
    for encoding in ("latin-1", "cp1252"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return text


def text_of(data):
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


# --- registry.pol ---------------------------------------------------------------------------------------------------

RECORD = re.compile(rb"\[\0((?:[^\0]\0|[^\0][^\0]|\0[^\0])*)\0\0;\0((?:[^\0]\0|[^\0][^\0]|\0[^\0])*)(?:\0\0)?;\0(....);\0(....);\0", re.S)


def data_of(kind, data):
    if kind in (1, 2, 7):
        text = data.decode("utf-16-le").rstrip("\0")
        if kind == 7:
            return {"multi_text": text.split("\0") if text else []}
        return {"text" if kind == 1 else "expand_text": text}
    if kind == 3:
        return {"binary": list(data)}
    if kind == 4 and len(data) == 4:
        return {"dword": struct.unpack("<I", data)[0]}
    if kind == 11 and len(data) == 8:
        return {"qword": struct.unpack("<Q", data)[0]}
    return {"other": {"kind": kind, "bytes": list(data)}}


def instructed(scope, key, name, value):
    """Place and value after the instruction in the name; None if it is not known."""
    match = re.fullmatch(r"\*\*(del\.)(.*)", name, re.I | re.S)
    if match:
        return registry(scope, key, match[2]), "delete"
    if re.fullmatch(r"\*\*delvals\.?", name, re.I):
        return registry(scope, key, ""), "delete_values"
    match = re.fullmatch(r"\*\*(deletekeys|deletevalues)\s*", name, re.I)
    if match:
        plain = {"deletekeys": "**DeleteKeys", "deletevalues": "**DeleteValues"}[match[1].lower()]
        return registry(scope, key, plain), {"delete_named": [word for word in value["text"].split(";") if word]}
    if name.startswith("**") and not re.match(r"\*\*(soft\.|securekey)", name, re.I):
        return None
    if not name and value == {"other": {"kind": 0, "bytes": []}}:
        return registry(scope, key, ""), "create_key"
    return registry(scope, key, name), value


def registry_pol(data, path):
    assert data[:8] == b"PReg\x01\0\0\0", path
    words = re.split(r"[^a-z0-9]+", path.lower())
    scopes = [word for word in words if word in ("machine", "computer", "user")]
    scope = "user" if scopes and scopes[-1] == "user" else "computer"
    settings, unknown, at = [], 0, 8
    while at < len(data):
        match = RECORD.match(data, at)
        assert match, f"{path}: no record at {at}"
        key, name = match[1].decode("utf-16-le"), match[2].decode("utf-16-le")
        kind, size = struct.unpack("<I", match[3])[0], struct.unpack("<I", match[4])[0]
        value = data[match.end():match.end() + size]
        assert data[match.end() + size:match.end() + size + 2] == b"]\0", path
        at = match.end() + size + 2
        found = instructed(scope, key, name, data_of(kind, value))
        if found:
            settings.append([*found, None])
        else:
            unknown += 1
    return settings, unknown


# --- security templates ---------------------------------------------------------------------------------------------

def words_of(data):
    lexer = shlex.shlex(data, posix=True)
    lexer.whitespace, lexer.whitespace_split = ",", True
    lexer.quotes, lexer.escape, lexer.commenters = '"', "", ""
    return list(lexer)


def template_line(section, line):
    """Place and value of a line; None if it is not a setting."""
    low = section.lower()
    if low == "registry values":
        match = re.fullmatch(r'"?(MACHINE|CURRENT_USER|CLASSES_ROOT)\\(.*)\\([^\\"]*)"?\s*=\s*(\d+)\s*,(.*)', line, re.I | re.S)
        if not match:
            return None
        hive, key, name, kind, data = match.groups()
        scope = "user" if hive.upper() == "CURRENT_USER" else "computer"
        key = "SOFTWARE\\Classes\\" + key if hive.upper() == "CLASSES_ROOT" else key
        kind = int(kind)
        if kind in (1, 2):
            data = data.strip()
            quoted = re.fullmatch(r'"((?:[^"]|"")*)"', data)
            data = quoted[1].replace('""', '"') if quoted else data
            value = {"text" if kind == 1 else "expand_text": data}
        elif kind == 3:
            value = {"binary": [int(byte) for byte in data.split(",") if byte.strip()]}
        elif kind == 4:
            value = number(data)
        elif kind == 7:
            value = {"multi_text": words_of(data)}
        else:
            value = {"other": {"kind": kind, "bytes": list(data.encode())}}
        return registry(scope, key, name), value
    if low in ("unicode", "version", "profile description", ""):
        return None
    if low in ("service general setting", "file security", "registry keys", "ds security"):
        match = re.fullmatch(r'(?:"([^"]*)"|([^",]+?))\s*,(.*)', line.strip(), re.S)
        return (template(section, match[1] if match[1] is not None else match[2].strip()), {"text": match[3].strip()}) if match else None
    name, equals, value = line.partition("=")
    if not equals:
        return None
    value = value.strip()
    quoted = re.fullmatch(r'"((?:[^"]|"")*)"', value)
    return template(section, name.strip()), {"text": quoted[1].replace('""', '"') if quoted else value}


def security_template(data, path):
    settings, unknown, section = [], 0, ""
    for line in re.split(r"\r\n|\n|\r", text_of(data)):
        if not line.strip() or line.strip().startswith(";"):
            continue
        header = re.fullmatch(r"\s*\[(.*)\]\s*", line)
        if header:
            section = header[1].strip()
            continue
        found = template_line(section, line.lstrip())
        if found:
            settings.append([*found, None])
        else:
            unknown += 1
    return settings, unknown


# --- Policy Analyzer ------------------------------------------------------------------------------------------------

def policy_rules(data, path):
    settings, unknown = [], 0
    for node in ElementTree.fromstring(data):
        field = {child.tag: child.text or "" for child in node}
        policy = repaired(field.get("PolicyName", "").strip()) or None
        found = None
        if node.tag in ("ComputerConfig", "UserConfig"):
            scope = "computer" if node.tag == "ComputerConfig" else "user"
            raw = field.get("RegData", "")
            kind = field["RegType"]
            value = {
                "REG_DWORD": lambda: number(raw),
                "REG_SZ": lambda: {"text": repaired(raw)},
                "REG_EXPAND_SZ": lambda: {"expand_text": repaired(raw)},
                "REG_NONE": lambda: {"other": {"kind": 0, "bytes": list(raw.strip().encode())}},
                "REG_MULTI_SZ": lambda: {"multi_text": [repaired(line) for part in raw.split("\\0") for line in part.splitlines() if line]},
                "REG_BINARY": lambda: {"binary": list(bytes.fromhex(re.sub("[^0-9a-fA-F]", "", raw)))},
            }[kind]()
            found = instructed(scope, repaired(field["Key"].strip()), repaired(field["Value"]), value)
        elif node.tag == "SecurityTemplate":
            found = template_line(node.get("Section"), repaired(field["LineItem"]))
        elif node.tag == "AuditSubcategory":
            found = audit(field["GUID"]), {"dword": int(field["Setting"])}
        elif node.tag in ("CSE-Machine", "CSE-User"):
            scope = "computer" if node.tag == "CSE-Machine" else "user"
            found = {"extension": {"scope": scope, "guid": field["GUID"]}}, {"text": repaired(field["Name"].strip())}
        if found:
            settings.append([*found, policy])
        else:
            unknown += 1
    return settings, unknown


# --- lists of lines -------------------------------------------------------------------------------------------------

def audit_csv(data, path):
    settings, unknown = [], 0
    for row in csv.DictReader(io.StringIO(text_of(data), newline="")):
        if row["Policy Target"].startswith("S-"):
            unknown += 1
            continue
        settings.append([audit(row["Subcategory GUID"] or row["Subcategory"]), {"dword": int(row["Setting Value"])}, None])
    return settings, unknown


AUDIT_NAMES = {"No Auditing": 0, "Success": 1, "Failure": 2, "Success and Failure": 3}
ACCOUNT_NAMES = {
    "Account lockout duration": "LockoutDuration", "Account lockout threshold": "LockoutBadCount",
    "Reset account lockout counter": "ResetLockoutCount", "Length of password history maintained": "PasswordHistorySize",
    "Minimum password length": "MinimumPasswordLength", "Maximum password age": "MaximumPasswordAge",
    "Minimum password age": "MinimumPasswordAge",
}
STARTS = {"Automatic": "2", "Manual": "3", "Disabled": "4"}


def finding_list(data, path):
    settings, unknown = [], 0
    for row in csv.DictReader(io.StringIO(text_of(data), newline="")):
        method, value, argument = row["Method"], row["RecommendedValue"].strip(), row["MethodArgument"].strip()
        plain = {"text": value} if value else "none"
        found = None
        if row["Operator"].strip().startswith("!"):
            pass
        elif method == "Registry":
            match = re.fullmatch(r"(HKLM|HKCU):?\\(.*)", row["RegistryPath"].strip(), re.I)
            if match:
                scope = "computer" if match[1].upper() == "HKLM" else "user"
                is_number = re.fullmatch(r"[0-9]+", value) and int(value) < 1 << 32
                found = registry(scope, match[2], row["RegistryItem"].strip()), {"dword": int(value)} if is_number else plain
        elif method == "auditpol":
            found = audit(argument), {"dword": AUDIT_NAMES[value]}
        elif method == "accesschk":
            found = template("Privilege Rights", argument), {"text": value.replace(";", ",")} if value else "none"
        elif method == "secedit":
            found = template(*argument.split("\\", 1)), plain
        elif method == "accountpolicy" and row["Name"].strip() in {name for name in ACCOUNT_NAMES}:
            found = template("System Access", ACCOUNT_NAMES[row["Name"].strip()]), plain
        elif method == "accountpolicy":
            close = {name.lower(): line for name, line in ACCOUNT_NAMES.items()}.get(row["Name"].strip().lower())
            found = (template("System Access", close), plain) if close else None
        elif method == "service" and value in STARTS:
            found = template("Service General Setting", argument), {"text": STARTS[value]}
        if found:
            settings.append([*found, None])
        else:
            unknown += 1
    return settings, unknown


# --- preferences and reports ----------------------------------------------------------------------------------------

def preferences(data, path):
    settings = []
    for node in ElementTree.fromstring(data).iter("Properties"):
        name = "" if node.get("default") == "1" else node.get("name")
        scope = {"HKEY_LOCAL_MACHINE": "computer", "HKEY_CURRENT_USER": "user"}[node.get("hive")]
        assert node.get("type") == "REG_DWORD", "only this type is in the samples"
        settings.append([registry(scope, node.get("key"), name), {"dword": int(node.get("value"), 16)}, None])
    return settings, 0


def local(tag):
    return tag.rsplit("}", 1)[-1]


def report(data, path):
    """gpreport.xml alone: security and auditing; policies of the registry section are not settings without templates."""
    settings, unknown = [], 0
    root = ElementTree.fromstring(data)
    def fields(node):
        # Texts are in the quotes of the template.
        found = {local(child.tag): (child.text or "").strip() for child in node}
        return {name: re.sub(r'^"(.*)"$', r"\1", text) if name == "SettingString" else text for name, text in found.items()}

    policy = fields(root)["Name"]
    for part in root:
        for extension in (node for node in part.iter() if local(node.tag) == "Extension"):
            kind = next(value for name, value in extension.items() if local(name) == "type").split(":")[-1]
            if kind not in ("SecuritySettings", "AuditSettings", "RegistrySettings"):
                unknown += 1
                continue
            for node in extension:
                field, tag, found = fields(node), local(node.tag), None
                if tag == "AuditSetting":
                    found = audit(field["SubcategoryGuid"]), {"dword": int(field["SettingValue"])}
                elif tag == "UserRightsAssignment":
                    sids = ["*" + child.text for child in node.iter() if local(child.tag) == "SID"]
                    found = template("Privilege Rights", field["Name"]), {"text": ",".join(sids)}
                elif tag == "Account":
                    value = field.get("SettingNumber") or {"true": "1", "false": "0"}[field["SettingBoolean"]]
                    found = template("System Access", field["Name"]), {"text": value}
                elif tag == "SecurityOptions" and "SystemAccessPolicyName" in field:
                    value = field.get("SettingString", field.get("SettingNumber"))
                    found = template("System Access", field["SystemAccessPolicyName"]), {"text": value}
                elif tag == "SecurityOptions":
                    key, name = field["KeyName"].split("\\", 1)[1].rsplit("\\", 1)
                    value = {"text": field["SettingString"]} if "SettingString" in field else number(field["SettingNumber"])
                    found = registry("computer", key, name), value
                if found:
                    settings.append([*found, policy])
                else:
                    unknown += 1
    return settings, unknown


def definitions(data, path):
    """Policies of an .admx: name, class, key, value, elements and the number of values that they offer."""
    policies = []
    for node in ElementTree.fromstring(data).iter():
        if local(node.tag) != "policy":
            continue
        elements = [[local(child.tag), child.get("id"), child.get("valueName"), sum(local(item.tag) == "item" for item in child)]
                    for part in node if local(part.tag) == "elements" for child in part]
        policies.append([node.get("name"), node.get("class").lower(), node.get("key"), node.get("valueName"), elements])
    return policies


def texts(data, path):
    return {node.get("id").lower(): node.text or "" for node in ElementTree.fromstring(data).iter() if local(node.tag) == "string"}


def read(path):
    data = open(path, "rb").read()
    text = "" if data.startswith(b"PReg") else text_of(data)[:4096]
    if data.startswith(b"PReg"):
        return "registry_pol", registry_pol(data, path)
    if re.search(r"^\[(Unicode|System Access|Registry Values)\]", text, re.M):
        return "security_template", security_template(data, path)
    root = re.search(r"<([A-Za-z]+)[\s>]", re.sub(r"<[?!][^>]*>", "", text))
    root = root[1] if root and text.lstrip().startswith("<") else None
    if root == "PolicyRules":
        return "policy_rules", policy_rules(data, path)
    if root == "RegistrySettings":
        return "preferences", preferences(data, path)
    if root == "GPO":
        return "group_policy_report", report(data, path)
    if root == "policyDefinitions":
        return "template_definitions", (definitions(data, path), None)
    if root == "policyDefinitionResources":
        return "template_texts", (texts(data, path), None)
    if root:
        names = {"BackupInst": "backup_info", "GroupPolicyBackupScheme": "group_policy_backup", "policyComments": "comments"}
        return names[root], ([], None)
    if text.startswith("Machine Name,"):
        return "audit_csv", audit_csv(data, path)
    if text.startswith("ID,Category,"):
        return "finding_list", finding_list(data, path)
    return "unrecognised", ([], 1)


def main():
    found = {}
    for path in sys.argv[1:]:
        kind, (settings, unknown) = read(path)
        found[path] = {"format": kind, "settings": settings, "unknown": unknown}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
