#!/usr/bin/env python3
"""Makes packages of built programs: what `make packages` calls.

    packaging/packages.py --program PROGRAM [--windows SMBSCOPE.EXE] --out DIR

For Linux: a .tar.gz, a .deb, an .rpm and a Python wheel; for Windows a .zip. Next to them a CycloneDX list of components,
the licences of third parties, and SHA256SUMS. Equal inputs give equal bytes: every time in a package is the
time of the last commit (SOURCE_DATE_EPOCH), owners are root, and the order is sorted.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11; hatchling brings it
    import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MACHINES = {  # e_machine of ELF: names of Debian, RPM, and wheels
    62: ("amd64", "x86_64", "x86_64"),
    183: ("arm64", "aarch64", "aarch64"),
}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def output_of(*command):
    return run(*command, capture_output=True, text=True).stdout


def version():
    with open(ROOT / "Cargo.toml", "rb") as file:
        return tomllib.load(file)["workspace"]["package"]["version"]


def epoch():
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or output_of("git", "-C", ROOT, "log", "-1", "--format=%ct"))


def machine(program):
    head = program.read_bytes()[:20]
    if head[:4] != b"\x7fELF":
        sys.exit(f"packages: {program} is not a program for Linux")
    number = int.from_bytes(head[18:20], "little")
    if number not in MACHINES:
        sys.exit(f"packages: {program}: machine {number} is unknown here")
    return MACHINES[number]


def glibc(program):
    """The oldest glibc that has every symbol that the program needs, as (major, minor)."""
    needed = re.findall(r"GLIBC_(\d+)\.(\d+)", output_of("readelf", "--version-info", "--wide", program))
    return max((int(major), int(minor)) for major, minor in needed)


def libraries(program):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "--dynamic", "--wide", program))


def write(path, data, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    path.chmod(mode)


def zipped(data):
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.write(data)
    return packed.getvalue()


def filled(name, values):
    return re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), (HERE / name).read_text())


def same_times(folder, time):
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (time, time), follow_symlinks=False)


def documents(folder):
    """README, changes, licences and the lists of third parties."""
    for name in ("README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"):
        write(folder / name, (ROOT / name).read_bytes())
    run(sys.executable, HERE / "components.py", "--sbom", folder / "sbom.cdx.json",
        "--licences", folder / "THIRD-PARTY.txt")


def generated(program, folder):
    """Manual pages, completions and schemas, by the program itself."""
    run(program, "man", "--dir", folder / "man", stdout=subprocess.DEVNULL)
    run(program, "schema", "--dir", folder / "schemas", stdout=subprocess.DEVNULL)
    for shell in ("bash", "zsh", "fish", "powershell"):
        write(folder / "completions" / shell, output_of(program, "completions", shell))


def system_tree(program, parts, tree):
    """What the .deb and the .rpm install."""
    write(tree / "usr/bin/smbscope", program.read_bytes(), 0o755)
    for page in sorted((parts / "man").iterdir()):
        write(tree / "usr/share/man/man1" / f"{page.name}.gz", zipped(page.read_bytes()))
    completions = parts / "completions"
    share = tree / "usr/share"
    write(share / "bash-completion/completions/smbscope", (completions / "bash").read_bytes())
    write(share / "zsh/vendor-completions/_smbscope", (completions / "zsh").read_bytes())
    write(share / "fish/vendor_completions.d/smbscope.fish", (completions / "fish").read_bytes())
    doc = share / "doc/smbscope"
    for name in ("README.md", "sbom.cdx.json", "THIRD-PARTY.txt", "CHANGELOG.md"):
        write(doc / f"{name}.gz", zipped((parts / name).read_bytes()))
    write(doc / "copyright", (HERE / "debian/copyright").read_bytes())
    write(tree / "usr/lib/systemd/system/smbscope-record.service", (HERE / "smbscope-record.service").read_bytes())
    write(tree / "usr/lib/sysusers.d/smbscope.conf", (HERE / "sysusers.conf").read_bytes())


def tar(parts, program, out, name, time):
    """The archive for every other Linux: the program, and what it writes about itself, in one folder."""

    def reproducible(info):
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = time
        return info

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(program, f"{name}/smbscope", filter=reproducible)
        for path in sorted(parts.rglob("*")):
            archive.add(path, f"{name}/{path.relative_to(parts)}", recursive=False, filter=reproducible)
    write(out / f"{name}.tar.gz", zipped(packed.getvalue()))


def deb(program, parts, out, values, time):
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        system_tree(program, parts, tree)
        files = sorted(path for path in tree.rglob("*") if path.is_file())
        values = values | {"SIZE": sum(path.stat().st_size for path in files) // 1024 + 1}
        sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files)
        write(tree / "DEBIAN/control", filled("debian/control.in", values))
        write(tree / "DEBIAN/md5sums", sums)
        for script in ("postinst", "prerm", "postrm"):
            write(tree / "DEBIAN" / script, (HERE / "debian" / script).read_bytes(), 0o755)
        same_times(tree, time)
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree,
            out / f"smbscope_{values['VERSION']}_{values['DEBIAN']}.deb",
            env=os.environ | {"SOURCE_DATE_EPOCH": str(time)}, stdout=subprocess.DEVNULL)


def rpm(program, parts, out, values, time):
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        tree = top / "tree"
        system_tree(program, parts, tree)
        same_times(tree, time)
        listed = [f"/{path.relative_to(tree)}" for path in sorted(tree.rglob("*")) if path.is_file()]
        marked = "\n".join(f"%doc {path}" if "/doc/" in path or "/man/" in path else path for path in listed)
        spec = top / "smbscope.spec"
        write(spec, filled("smbscope.spec.in", values | {"TREE": tree, "FILES": marked}))
        run("rpmbuild", "-bb", "--quiet", "--target", values["RPM"], "--define", f"_topdir {top}",
            "--define", "_build_id_links none", "--define", "_buildhost smbscope", "--define", "_binary_payload w19.zstdio",
            "--define", "use_source_date_epoch_as_buildtime 1", "--define", "clamp_mtime_to_source_date_epoch 1",
            spec, env=os.environ | {"SOURCE_DATE_EPOCH": str(time)})
        for made in sorted((top / "RPMS").rglob("*.rpm")):
            shutil.copy(made, out / made.name)


def wheel(program, out, tag, time):
    """A wheel with the program and a package that calls it: one file for every Python 3."""
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder) / "project"
        shutil.copytree(HERE / "python", project, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        settings = project / "pyproject.toml"
        settings.write_text(settings.read_text().replace("@VERSION@", version()))
        name = "smbscope.exe" if program.suffix == ".exe" else "smbscope"
        write(project / "bin" / name, program.read_bytes(), 0o755)
        for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
            shutil.copy(ROOT / licence, project)
        same_times(project, time)
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, project,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(time), "SMBSCOPE_WHEEL_TAG": tag}, stdout=subprocess.DEVNULL)


def zip_for_windows(program, parts, out, name, time):
    moment = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for inside, path in [("smbscope.exe", program)] + [
            (str(path.relative_to(parts)), path) for path in sorted(parts.rglob("*"))
            if path.is_file() and path.relative_to(parts).parts[0] != "man"
        ]:
            info = zipfile.ZipInfo(f"{name}/{inside}", moment)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True, help="smbscope for Linux, stripped")
    parser.add_argument("--windows", type=pathlib.Path, help="smbscope.exe")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the packages")
    given = parser.parse_args()
    time = epoch()
    debian, rpm_name, wheel_name = machine(given.program)
    foreign = [name for name in libraries(given.program) if not re.match(r"(lib(c|m|gcc_s|pthread|dl|rt)|ld-linux.*)\.so", name)]
    if foreign:
        sys.exit(f"packages: {given.program} needs {', '.join(foreign)}: build it by `make dist`, which links them statically")
    major, minor = glibc(given.program)
    if (major, minor) > (2, 36):
        print(f"packages: warning: the program needs glibc {major}.{minor}; Debian 12 has 2.36", file=sys.stderr)
    values = {"VERSION": version(), "DEBIAN": debian, "RPM": rpm_name, "GLIBC": f"{major}.{minor}"}
    out = given.out
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        if old.name.startswith("smbscope") or old.name in ("SHA256SUMS", "sbom.cdx.json"):
            old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        parts = pathlib.Path(folder) / "parts"
        parts.mkdir()
        documents(parts)
        generated(given.program, parts)
        for path in parts.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        tar(parts, given.program, out, f"smbscope-{version()}-{rpm_name}-linux", time)
        deb(given.program, parts, out, values, time)
        rpm(given.program, parts, out, values, time)
        wheel(given.program, out, f"py3-none-manylinux_{major}_{minor}_{wheel_name}", time)
        if given.windows:
            zip_for_windows(given.windows, parts, out, f"smbscope-{version()}-x86_64-windows", time)
            wheel(given.windows, out, "py3-none-win_amd64", time)
        shutil.copy(parts / "sbom.cdx.json", out / "sbom.cdx.json")
    made = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    sums = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    write(out / "SHA256SUMS", "".join(f"{digest}  {path.name}\n" for path, digest in sums.items()))
    for path in made:
        print(f"{path.stat().st_size / 1e6:7.1f} MB  {path}")


if __name__ == "__main__":
    main()
