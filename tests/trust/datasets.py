"""Datasets of strangers: each case is a copy of a good one with one thing changed. `cases(base, folder)` yields them as
(name, folder, whether it must be refused). Needs pyarrow.
"""

import json
import os
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq

PART = "operations/part-000000.parquet"


def manifest(**changes):
    """Changes of the first part's entry in the manifest."""

    def change(folder):
        with open(f"{folder}/manifest.json") as file:
            value = json.load(file)
        value["tables"]["operations"][0].update(changes)
        with open(f"{folder}/manifest.json", "w") as file:
            json.dump(value, file)

    return change


def text(contents):
    def change(folder):
        with open(f"{folder}/manifest.json", "w") as file:
            file.write(contents)

    return change


def replaced(name, target):
    """A link to `target`, or a pipe, instead of a file."""

    def change(folder):
        path = f"{folder}/{name}"
        if os.path.exists(path):
            os.unlink(path)
        os.mkfifo(path) if target is None else os.symlink(target, path)

    return change


def copied(folder):
    shutil.copy(f"{folder}/sessions/part-000000.parquet", f"{folder}/{PART}")


def rewritten(of_table, **options):
    """The operations as another table, with the notes that smbscope's files have."""

    def change(folder):
        path = f"{folder}/{PART}"
        notes = pq.ParquetFile(path).metadata.metadata
        notes = {key: value for key, value in notes.items() if key.startswith(b"smbscope")}
        table = of_table(pq.read_table(path)).replace_schema_metadata(notes)
        pq.write_table(table, path, **{"compression": "zstd", **options})

    return change


def column(name, values):
    def change(table):
        return table.set_column(table.schema.get_field_index(name), name, values(len(table)))

    return change


def shared(size):
    return lambda rows: pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["A" * size]))


def nested(table):
    inner = pa.array([None] * len(table), pa.int32())
    for _ in range(200):
        inner = pa.StructArray.from_arrays([inner], ["a"])
    return table.append_column("deep", inner)


def footer(change):
    """Changes the bytes of the footer."""

    def apply(folder):
        path = f"{folder}/{PART}"
        with open(path, "rb") as file:
            data = bytearray(file.read())
        change(data, int.from_bytes(data[-8:-4], "little"))
        with open(path, "wb") as file:
            file.write(data)

    return apply


def flips(step):
    def change(data, length):
        for at in range(len(data) - 8 - length, len(data) - 8, step):
            data[at] ^= 1 << at % 8

    return change


def arrow_schema(data, length):
    """Damages the Arrow schema that the footer carries in base64, and nothing else."""
    at = data.find(b"ARROW:schema")
    assert at > 0, "the file has an Arrow schema"
    for place in range(at + 60, at + 3000, 7):
        data[place : place + 1] = b"A" if data[place] != 65 else b"Q"


def many_parts(count):
    def change(folder):
        first = f"{folder}/{PART}"
        for number in range(1, count):
            os.link(first, f"{folder}/operations/part-{number:06}.parquet")

    return change


# Name: change, whether it must be refused.
CASES = {
    "wrong-table": (copied, True),
    "rows-too-many": (manifest(rows=2**64 - 1), True),
    "rows-too-few": (manifest(rows=1), True),
    "path-outside": (manifest(file="../../../../etc/passwd"), True),
    "path-absolute": (manifest(file="/etc/passwd"), True),
    "manifest-nested": (text("[" * 200_000), True),
    "manifest-empty": (text(""), True),
    "manifest-pipe": (replaced("manifest.json", None), True),
    "manifest-endless": (replaced("manifest.json", "/dev/zero"), True),
    "manifest-huge": (lambda folder: os.truncate(f"{folder}/manifest.json", 1 << 30), True),
    "part-pipe": (replaced("operations/part-000099.parquet", None), True),
    "part-endless": (replaced("operations/part-000099.parquet", "/dev/zero"), True),
    "part-empty": (lambda folder: os.truncate(f"{folder}/{PART}", 0), True),
    "text-of-100-mb": (rewritten(column("path", shared(100_000_000)), compression="zstd", write_statistics=False), True),
    "text-of-600-mb": (rewritten(column("path", shared(600_000_000)), compression="zstd", write_statistics=False), True),
    "numbers-as-words": (rewritten(column("elapsed_ns", lambda rows: pa.array(["x"] * rows))), True),
    "numbers-as-nan": (rewritten(column("elapsed_ns", lambda rows: pa.array([float("nan")] * rows))), True),
    "numbers-extreme": (rewritten(column("elapsed_ns", lambda rows: pa.array([2**63 - 1, -(2**63)] * (rows // 2) + [0] * (rows % 2)))), False),
    "path-as-list": (rewritten(column("path", lambda rows: pa.array([[1, 2]] * rows))), True),
    "nested-200": (rewritten(nested), False),
    "footer-flips": (footer(flips(97)), True),
    "footer-few-flips": (footer(flips(1999)), None),
    "arrow-schema": (footer(arrow_schema), None),
    "parts-2000": (many_parts(2000), False),
}
FAST = ["wrong-table", "path-outside", "manifest-pipe", "part-endless", "text-of-100-mb", "numbers-as-words", "arrow-schema"]


def make(name, base, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    change, is_refused = CASES[name]
    change(folder)
    return is_refused


if __name__ == "__main__":
    make(*sys.argv[1:4])
