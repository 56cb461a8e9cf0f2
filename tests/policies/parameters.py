#!/usr/bin/env python3
"""Makes or checks the table of smb.conf's parameters from real testparm programs.

parameters.py make  TESTPARM_4_17 TESTPARM_4_22 > crates/plan/src/baseline/read/samba/parameters.csv
parameters.py check TABLE VERSION TESTPARM     compares names, synonyms, defaults and spellings of one version; exits with
                                               1 and a line for each difference

Columns: name; scope (global, share); kind (bool, enum, bytes, integer, list, text ...); the defaults of Samba 4.17 and
4.22 as `testparm -sv` prints them for an empty file (`-`: the version does not know the parameter; names of the machine
and of its packages are written as `*`); values (of an enum: `printed=other spelling=...`, separated by `|`); synonyms
(separated by `|`, an inverse one ends with `!`).
"""

import csv
import re
import subprocess
import sys
import tempfile

VERSIONS = ("4.17", "4.22")
# Their defaults depend on the machine or on the package.
LOCAL = {
    "netbios name", "server string", "workgroup", "interfaces", "dns hostname", "server addresses", "state directory",
    "cache directory", "lock directory", "private dir", "pid directory", "ntp signd socket directory",
    "ncalrpc dir", "usershare path", "smb passwd file", "passdb backend", "log file", "winbindd socket directory",
    "nbt client socket address", "socket options", "binddns dir", "logging",
}


def run(testparm, arguments, text=""):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(text)
        file.flush()
        made = subprocess.run([testparm, "-s", *arguments, file.name], capture_output=True, text=True)
        return made.stdout, made.stderr


def spoken(testparm):
    """name -> (scope, kind, raw values), and synonym -> (name, inverse)."""
    output, _ = run(testparm, ["--show-all-parameters"])
    names, synonyms, scope = {}, {}, None
    for line in output.splitlines():
        if line.strip() in ("[local]", "[global]"):
            scope = {"local": "share", "global": "global"}[line.strip()[1:-1]]
            continue
        match = re.match(r"^([^=]+)=(P_\w+),?(.*)$", line)
        if not match:
            continue
        name, kind, rest = match.groups()
        synonym = re.search(r"\((inverse )?synonym of (.+?)\)$", rest)
        if synonym:
            synonyms[name] = (synonym[2], bool(synonym[1]))
            continue
        values = [word for word in re.sub(r"\(synonyms:.*\)$", "", rest).strip(" ,").split(",")
                  if word and not word.startswith("FLAG_")]
        names[name] = (scope, kind[2:].lower(), values[0].split("|") if values else [])
    return names, synonyms


def printed(testparm, scope, name, value):
    """What testparm prints for the value, or None if it refuses it."""
    section = "global" if scope == "global" else "check"
    output, errors = run(testparm, ["-v", "--skip-logic-checks"], f"[{section}]\n{name} = {value}\n")
    if "Ignoring invalid value" in errors or "invalid value" in errors.lower():
        return None
    found, inside = None, False
    for line in output.splitlines():
        if line.startswith("["):
            inside = line.strip().lower() == f"[{section}]"
        elif inside and line.strip().split(" = ")[0].strip(" =").lower() == name:
            found = line.split("=", 1)[1].strip()
    return found


def defaults(testparm):
    output, _ = run(testparm, ["-v"])
    return {line.split("=", 1)[0].strip(): line.split("=", 1)[1].strip()
            for line in output.splitlines() if "=" in line and line.startswith("\t")}


def table(testparms):
    rows, synonyms_of = {}, {}
    for version, testparm in zip(VERSIONS, testparms):
        names, synonyms = spoken(testparm)
        values_of = defaults(testparm)
        for synonym, (name, inverse) in synonyms.items():
            synonyms_of.setdefault(name, {})[synonym + ("!" if inverse else "")] = None
        for name, (scope, kind, values) in names.items():
            row = rows.setdefault(name, {"name": name, "values": {}})
            # The newest version counts: `debug syslog format` was a flag once.
            row["scope"], row["kind"] = scope, kind
            default = values_of.get(name, "")
            row[version] = "*" if name in LOCAL else default
            for value in values:
                shown = printed(testparm, scope, name, value) if kind == "enum" else None
                row["values"].setdefault(shown or value, {})[value] = None
    for name in sorted(rows):
        row = rows[name]
        values = "|".join("=".join([shown, *[other for other in others if other != shown]])
                          for shown, others in row["values"].items())
        yield [name, row["scope"], row["kind"], row.get("4.17", "-"), row.get("4.22", "-"), values,
               "|".join(synonyms_of.get(name, {}))]


def check(path, version, testparm):
    rows = {row["name"]: row for row in csv.DictReader(open(path, encoding="utf-8", newline=""))}
    names, synonyms = spoken(testparm)
    values_of = defaults(testparm)
    wrong = []
    known = {name for name, row in rows.items() if row[version] != "-"}
    wrong += [f"{name}: testparm does not know it" for name in sorted(known - set(names))]
    wrong += [f"{name}: missing in the table" for name in sorted(set(names) - known)]
    for name in sorted(known & set(names)):
        row = rows[name]
        scope, kind, _ = names[name]
        was_flag = (kind, row["kind"]) == ("bool", "enum")
        if scope != row["scope"] or (kind != row["kind"] and not was_flag):
            wrong.append(f"{name}: {scope} {kind}, the table has {row['scope']} {row['kind']}")
        default = values_of.get(name, "")
        if row[version] not in ("*", default):
            wrong.append(f"{name}: default `{default}`, the table has `{row[version]}`")
    listed = {(synonym.rstrip("!"), name, synonym.endswith("!"))
              for name, row in rows.items() for synonym in row["synonyms"].split("|") if synonym}
    real = {(synonym, name, inverse) for synonym, (name, inverse) in synonyms.items()}
    wrong += [f"{a} -> {b} (inverse {c}): missing in the table" for a, b, c in sorted(real - listed)]
    wrong += [f"{a} -> {b} (inverse {c}): testparm does not know it" for a, b, c in sorted(listed - real)]
    # Spellings: each is read again by testparm.
    spellings = 0
    for name in sorted(known & set(names)):
        row = rows[name]
        if row["kind"] != "enum":
            continue
        allowed = {value.lower() for value in names[name][2]}
        for group in row["values"].split("|"):
            shown, *others = group.split("=")
            for value in [shown, *others]:
                if value.lower() not in allowed:
                    continue
                spellings += 1
                found = printed(testparm, row["scope"], name, value)
                if found is not None and found != shown:
                    wrong.append(f"{name} = {value}: printed as `{found}`, the table has `{shown}`")
    print(f"{len(known)} parameters, {len(listed)} synonyms, {spellings} spellings, {len(wrong)} differences")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def main():
    if sys.argv[1:2] == ["make"]:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["name", "scope", "kind", *VERSIONS, "values", "synonyms"])
        writer.writerows(table(sys.argv[2:4]))
        return 0
    return check(*sys.argv[2:5])


if __name__ == "__main__":
    sys.exit(main())
