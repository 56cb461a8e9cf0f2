"""smbscope in Python: tables of SMB operations, and what makes a share slow.

    import smbscope
    recording = smbscope.read("share.pcapng")
    recording.operations.to_pandas().query("command == 'Create'").elapsed_ns.hist()

The work is done by the program that this package brings, in a process of its own: a damaged capture cannot stop the
interpreter. Tables are pyarrow's, which pandas, polars and DuckDB take without a copy (Arrow's C data interface).
Columns are described by ``smbscope schema``; times are in nanoseconds.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import typing

if typing.TYPE_CHECKING:
    import pyarrow

__all__ = ["Diagnosis", "Error", "Finding", "Recording", "explain", "program", "read", "report"]

Inputs = typing.Union[str, "os.PathLike[str]", typing.Sequence[typing.Union[str, "os.PathLike[str]"]]]


class Error(RuntimeError):
    """The program ended with an error. ``code`` is its exit code (``smbscope --help`` lists them)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def program() -> str:
    """The path of the program: the environment variable SMBSCOPE, this environment's, or the one on the PATH.

    Raises FileNotFoundError if there is none.
    """
    name = "smbscope.exe" if sys.platform == "win32" else "smbscope"
    installed = [os.environ.get("SMBSCOPE"), os.path.join(sysconfig.get_path("scripts"), name)]
    for path in installed:
        if path and os.path.isfile(path):
            return path
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError("smbscope is not installed: pip install smbscope, or set SMBSCOPE to its path")
    return found


class Recording:
    """The tables of one or more inputs. Each is read from disk when it is first asked for."""

    def __init__(self, folder: pathlib.Path, owned: tempfile.TemporaryDirectory | None = None) -> None:
        self._folder = folder
        self._owned = owned
        self._tables: dict[str, pyarrow.Table] = {}

    @property
    def tables(self) -> list[str]:
        """Names of the tables; many have no rows."""
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir() and any(path.glob("*.parquet")))

    def table(self, name: str) -> pyarrow.Table:
        """A table by its name. Raises KeyError if the recording has none of this name."""
        if name not in self._tables:
            import pyarrow
            import pyarrow.parquet

            parts = sorted((self._folder / name).glob("*.parquet"))
            if not parts:
                raise KeyError(f"the recording has no table {name!r}; it has {', '.join(self.tables)}")
            read = [pyarrow.parquet.read_table(part, partitioning=None) for part in parts]
            self._tables[name] = pyarrow.concat_tables(read, promote_options="default")
        return self._tables[name]

    @property
    def operations(self) -> pyarrow.Table:
        """One row per SMB operation."""
        return self.table("operations")

    @property
    def waits(self) -> pyarrow.Table:
        """Waits of clients: what each was for, from when to when."""
        return self.table("waits")

    @property
    def opens(self) -> pyarrow.Table:
        """One row per open of a file or folder: the table `handles`."""
        return self.table("handles")

    @property
    def counters(self) -> pyarrow.Table:
        """Counters of the machines during the recording."""
        return self.table("counters")

    def __repr__(self) -> str:
        return f"<smbscope.Recording of {', '.join(self.tables)}>"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that makes a share slow, or breaks it."""

    kind: str
    """Its key, for example ``small-reads``."""
    what: str
    """A sentence with its numbers."""
    confidence: str | None
    """``measured``, ``likely``, ``possible``, or none."""
    owner: str | None
    """The side that can change it, for example ``client``."""
    remedies: tuple[str, ...]
    """What to do, the most useful first."""
    details: dict[str, typing.Any] = dataclasses.field(repr=False)
    """Everything that ``smbscope explain --format json`` says about it."""


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What ``smbscope explain`` says. Iterating gives the findings, the most important first."""

    state: str | None
    """``healthy``, ``slow``, ``broken`` or ``unknown``."""
    findings: tuple[Finding, ...]
    details: dict[str, typing.Any] = dataclasses.field(repr=False)

    def __iter__(self) -> typing.Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)


def _paths(inputs: Inputs) -> list[str]:
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    # A name that begins with a dash is not an option.
    paths = [os.fspath(path) for path in inputs]
    return [os.path.join(".", path) if path.startswith("-") else path for path in paths]


def _run(command: str, arguments: typing.Sequence[str]) -> str:
    ended = subprocess.run(
        [program(), command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace"
    )
    if ended.returncode != 0:
        lines = ended.stderr.strip().splitlines() or [f"smbscope ended with code {ended.returncode}"]
        raise Error(lines[-1].removeprefix("smbscope: "), ended.returncode)
    return ended.stdout


def read(inputs: Inputs, *options: str) -> Recording:
    """Reads captures, traces, event logs, datasets or run folders.

    ``options`` are those of ``smbscope import``, for example ``"--share", "home"``. A dataset without options is read in
    place; everything else is first written to a temporary folder, which lives as long as the recording.

    Raises Error if an input cannot be read.
    """
    paths = _paths(inputs)
    if len(paths) == 1 and not options and (pathlib.Path(paths[0]) / "manifest.json").is_file():
        return Recording(pathlib.Path(paths[0]))
    owned = tempfile.TemporaryDirectory(prefix="smbscope-")
    folder = pathlib.Path(owned.name) / "recording"
    _run("import", [*paths, *options, "--quiet", "--out", str(folder)])
    return Recording(folder, owned)


def _answer(command: str, inputs: Inputs, options: typing.Sequence[str]) -> dict[str, typing.Any]:
    return json.loads(_run(command, [*_paths(inputs), *options, "--quiet", "--format", "json"]))


def explain(inputs: Inputs, *options: str) -> Diagnosis:
    """Why the share is slow. ``options`` are those of ``smbscope explain``. Raises Error if an input cannot be read."""
    answer = _answer("explain", inputs, options)
    findings = tuple(
        Finding(
            kind=one["trouble"],
            what=one["what"],
            confidence=one.get("confidence"),
            owner=(one.get("owner") or {}).get("actor"),
            remedies=tuple(remedy["action"] for remedy in one.get("remedies", ())),
            details=one,
        )
        for one in answer.get("findings", ())
    )
    return Diagnosis(state=answer.get("state"), findings=findings, details=answer)


def report(inputs: Inputs, *options: str) -> dict[str, typing.Any]:
    """What ``smbscope report --format json`` says, by key. Raises Error if an input cannot be read."""
    return _answer("report", inputs, options)
