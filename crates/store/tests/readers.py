"""Reads a run folder with DuckDB and with pyarrow and prints what each finds, as JSON.

    readers.py FOLDER

One object per reader: rows by table, and of the operations columns' types, sums, counts of
values, and a count by command. readers.rs compares them with each other and with smbscope.
"""

import glob
import json
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

SUMS = ["operation", "elapsed_ns", "request_wire_bytes", "outstanding", "status", "response_end"]
COUNTS = ["command", "path", "file_id", "server_ns", "signed", "compound_index", "queue_ns"]


def tables(folder):
    return sorted(
        name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))
    )


def with_duckdb(folder):
    connection = duckdb.connect()

    def ask(sql):
        return connection.execute(sql).fetchall()

    def files(table):
        return f"read_parquet('{folder}/{table}/*.parquet')"

    operations = files("operations")
    # Points in time are timestamps.
    number = lambda name: "epoch_ns(response_end)" if name == "response_end" else name
    sums = ", ".join(f"sum({number(name)}::HUGEINT)::VARCHAR" for name in SUMS)
    counts = ", ".join(f"count({name})" for name in COUNTS)
    types = {name: kind for name, kind, *_ in ask(f"DESCRIBE SELECT * FROM {operations}")}
    return {
        "rows": {name: ask(f"SELECT count(*) FROM {files(name)}")[0][0] for name in tables(folder)},
        "sums": dict(zip(SUMS, ask(f"SELECT {sums} FROM {operations}")[0])),
        "counts": dict(zip(COUNTS, ask(f"SELECT {counts} FROM {operations}")[0])),
        # Nearest rank: quantile_disc.
        "percentiles": {
            share: ask(f"SELECT quantile_disc(elapsed_ns, {share}) FROM {operations}")[0][0]
            for share in ["0.0", "0.25", "0.5", "0.9", "0.95", "0.99", "1.0"]
        },
        "commands": dict(
            ask(f"SELECT command, count(*) FROM {operations} WHERE command IS NOT NULL GROUP BY 1")
        ),
        "types": {name: types[name] for name in ["response_end", "path", "file_id", "offset_bytes"]},
    }


def with_pyarrow(folder):
    read = lambda name: ds.dataset(
        sorted(glob.glob(f"{folder}/{name}/*.parquet")), format="parquet"
    ).to_table()
    found = {name: read(name) for name in tables(folder)}
    operations = found["operations"]
    assert b"smbscope.doc" in operations.schema.field("response_end").metadata
    commands = pc.value_counts(operations["command"].cast(pa.string()).drop_null())
    # By hand: sums of large times overflow 64 bits.
    def total(name):
        column = operations[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        return str(sum(value for value in column.to_pylist() if value is not None))

    return {
        "rows": {name: table.num_rows for name, table in found.items()},
        "sums": {name: total(name) for name in SUMS},
        "counts": {name: pc.count(operations[name]).as_py() for name in COUNTS},
        "commands": {row["values"].as_py(): row["counts"].as_py() for row in commands},
        "types": {
            name: str(operations.schema.field(name).type)
            for name in ["response_end", "path", "file_id", "offset_bytes"]
        },
    }


folder = sys.argv[1]
print(json.dumps({"duckdb": with_duckdb(folder), "pyarrow": with_pyarrow(folder)}))
