#!/usr/bin/env python3
"""Lists what the program is made of: a CycloneDX bill of materials and the licence texts of third parties.

    packaging/components.py --sbom FILE --licences FILE

Components are the crates that `cargo tree` resolves for the program with its features on Linux and Windows, without
what only builds or tests it. Checksums are those of Cargo.lock. Licence texts come from the crates' own sources.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import uuid

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11; hatchling brings it
    import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-gnu"]
TEXTS = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)
# What the program links statically and cargo does not know.
LINKED = [
    ("elfutils libelf", "LGPL-3.0-or-later OR GPL-2.0-or-later", "https://sourceware.org/elfutils/"),
    ("zlib", "Zlib", "https://zlib.net/"),
]


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True, cwd=ROOT).stdout


def linked_crates():
    """Names and versions of the crates that are in the program."""
    found = set()
    for target in TARGETS:
        features = ["--features", "probe"] if "linux" in target else []
        lines = cargo("tree", "--locked", "-p", "smbscope", "--target", target, "--edges", "normal", "--prefix", "none",
                      "--format", "{p}", *features)
        for line in lines.splitlines():
            if match := re.match(r"(\S+) v(\S+)", line):
                found.add((match[1], match[2]))
    return found


def packages():
    """What cargo knows about each linked crate, sorted; crates of this repository first."""
    linked = linked_crates()
    known = json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]
    chosen = [package for package in known if (package["name"], package["version"]) in linked]
    return sorted(chosen, key=lambda package: (package["source"] is not None, package["name"], package["version"]))


def checksums():
    with open(ROOT / "Cargo.lock", "rb") as file:
        lock = tomllib.load(file)["package"]
    return {(package["name"], package["version"]): package.get("checksum") for package in lock}


def component(package, checksum):
    made = {
        "type": "library",
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
        "bom-ref": f"pkg:cargo/{package['name']}@{package['version']}",
    }
    if package["license"]:
        # Older crates write "MIT/Apache-2.0".
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def sbom(chosen):
    sums = checksums()
    main = next(package for package in chosen if package["name"] == "smbscope")
    others = [component(package, sums.get((package["name"], package["version"])))
              for package in chosen if package is not main]
    native = [{"type": "library", "name": name, "bom-ref": f"native:{name}", "licenses": [{"expression": licence}],
               "externalReferences": [{"type": "website", "url": url}]} for name, licence, url in LINKED]
    content = json.dumps([others, native], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same components have the same number, so that the file can be reproduced.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": component(main, None) | {"type": "application"}},
        "components": others + native,
    }


def licence_texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    names = [path for path in folder.iterdir() if path.is_file() and TEXTS.search(path.name)]
    if package["license_file"]:
        names.append(folder / package["license_file"])
    return [path.read_text(errors="replace").strip() for path in sorted(set(names)) if path.stat().st_size < 200_000]


def licences(chosen):
    """Every text once, under the crates that have it."""
    users, missing = {}, []
    for package in chosen:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']} ({package['license'] or 'see the text'})"
        texts = licence_texts(package)
        if not texts:
            missing.append(name)
        for text in texts:
            users.setdefault(text, []).append(name)
    pages = ["smbscope contains the following third-party software.\n"]
    pages += [f"{name} ({licence}), {url}, linked statically; the texts are in /usr/share/common-licenses of Debian.\n"
              for name, licence, url in LINKED]
    if missing:
        pages.append("Crates that name their licence and carry no text:\n  " + "\n  ".join(missing) + "\n")
    for text, names in sorted(users.items(), key=lambda item: item[1]):
        pages.append("=" * 78 + "\n" + "\n".join(names) + "\n" + "-" * 78 + f"\n{text}\n")
    return "\n".join(pages)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sbom", type=pathlib.Path, required=True)
    parser.add_argument("--licences", type=pathlib.Path, required=True)
    given = parser.parse_args()
    chosen = packages()
    if len(chosen) < 50:
        sys.exit(f"components: only {len(chosen)} crates found")
    given.sbom.write_text(json.dumps(sbom(chosen), indent=1) + "\n")
    given.licences.write_text(licences(chosen))


if __name__ == "__main__":
    main()
