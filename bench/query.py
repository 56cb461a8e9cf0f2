#!/usr/bin/env python3
"""SQL on the same Parquet files: `smbscope query` against DuckDB, as a Markdown table of ratios.

    bench/query.py --smbscope PATH --captures DIR [--python PYTHON] [--repeat 7]

Imports metadata.pcap once, then runs each query with both programs in turns, each as a process of its own with two
threads; the median of the wall times counts, start of the process included. Results must be equal
(percentiles within 0.2 %). DuckDB is the Python
package (scripts/setup.sh bench installs it), so its start is that of Python with duckdb imported.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# What people ask: counts, groups, percentiles, one path, a time range, a join, a sort, a scan without columns.
QUERIES = {
    "count": "select count(*) as n from operations",
    "by command": "select command, count(*) as n, sum(elapsed_ns) as ns from operations group by command order by command",
    "p95 by command": "select command, {p95} as p95 from operations where elapsed_ns is not null "
                      "group by command order by command",
    "one client": "select count(*) as n from operations where client = (select min(client) from operations)",
    "a tenth of the time": "select count(*) as n from operations where {start} < (select min({start}) + "
                           "(max({start}) - min({start})) / 10 from operations)",
    "by folder": "select count(*) as n from (select distinct path from operations where path is not null)",
    "with connections": "select c.server_port as port, count(*) as n from operations o join connections c "
                        "on o.recording = c.recording and o.connection = c.connection group by c.server_port order by port",
    "slowest": "select operation, elapsed_ns as ns from operations where elapsed_ns is not null "
               "order by elapsed_ns desc, operation limit 20",
}
# What each program calls the same. Times are integers in smbscope, and time stamps in the files.
WORDS = {
    "smbscope": {"p95": "percentile(elapsed_ns, 0.95)", "start": "request_start"},
    "duckdb": {"p95": "quantile_disc(elapsed_ns, 0.95)", "start": "epoch_ns(request_start)"},
}
DUCKDB = """
import json, sys, duckdb
folder, query = sys.argv[1:]
base = duckdb.connect()
base.execute("set threads = 2")
for table in ("operations", "connections"):
    base.execute(f"create view {table} as select * from read_parquet('{folder}/{table}/*.parquet')")
print(json.dumps([[str(cell) for cell in row] for row in base.execute(query).fetchall()]))
"""


def timed(command, **more):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"bench: {' '.join(command[:3])}: {done.stderr.strip()[-500:]}")
    return time.perf_counter() - begin, done.stdout


def rows(program, text):
    """The cells as text."""
    if program == "duckdb":
        return json.loads(text)
    # NDJSON or an array of objects.
    text = text.strip()
    objects = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    return [[str(cell) for cell in row.values()] for row in objects]


def equal(ours, theirs):
    """Whether the rows are equal; percentiles of many values are within 0.2 % (docs/guide/sql.md)."""

    def near(one, other):
        if one == other:
            return True
        try:
            return abs(float(one) - float(other)) <= 0.002 * abs(float(other))
        except (TypeError, ValueError):
            return False

    return len(ours) == len(theirs) and \
        all(len(row) == len(other) and all(map(near, row, other)) for row, other in zip(ours, theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--captures", required=True)
    parser.add_argument("--python", default=sys.executable, help="a Python that has duckdb")
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="smbscope-bench-")
    try:
        dataset = os.path.join(scratch, "dataset")
        capture = os.path.join(args.captures, "metadata.pcap")
        timed([args.smbscope, "import", "--quiet", capture, "--out", dataset])
        script = os.path.join(scratch, "duck.py")
        with open(script, "w") as file:
            file.write(DUCKDB)
        print(f"### SQL on the same Parquet, median of {args.repeat} runs in turns\n")
        print("| query | smbscope ms | DuckDB ms | ratio |\n|---|---|---|---|")
        ratios = []
        for title, query in QUERIES.items():
            commands = {
                "smbscope": [args.smbscope, "query", dataset, query.format(**WORDS["smbscope"]), "--format", "json",
                             "--quiet"],
                "duckdb": [args.python, script, dataset, query.format(**WORDS["duckdb"])],
            }
            times, answers = {name: [] for name in commands}, {}
            for _ in range(args.repeat):
                for name, command in commands.items():
                    seconds, text = timed(command)
                    times[name].append(seconds)
                    answers[name] = rows(name, text)
            if not equal(*answers.values()):
                sys.exit(f"bench: {title}: {answers['smbscope'][:3]} is not {answers['duckdb'][:3]}")
            ours, theirs = (statistics.median(times[name]) for name in commands)
            ratios.append(ours / theirs)
            print(f"| {title} | {1e3 * ours:.0f} | {1e3 * theirs:.0f} | {ours / theirs:.2f} |", flush=True)
        print(f"\nGeometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}\n")
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
