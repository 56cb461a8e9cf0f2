"""What the README of the package shows, on a capture: python example.py CAPTURE"""

import sys

import smbscope

path = sys.argv[1]
recording = smbscope.read(path)
operations = recording.operations
assert operations.num_rows == 106, operations.num_rows
assert {"operations", "handles", "waits"} <= set(recording.tables), recording.tables
reads = operations.to_pandas().query("command == 'Read'")
assert len(reads) == 100 and 19e6 < reads.elapsed_ns.median() < 22e6, reads.elapsed_ns.describe()
assert recording.opens.num_rows > 0 and recording.waits.num_rows > 0

diagnosis = smbscope.explain(path)
assert diagnosis.state == "slow", diagnosis
first = next(iter(diagnosis))
assert first.kind and "blocks" in first.what and first.remedies, first
assert first.owner == "client", first

try:
    smbscope.read("no-such-file.pcap")
except smbscope.Error as error:
    assert error.code == 4 and "no-such-file" in str(error), (error.code, error)
else:
    raise AssertionError("a missing file was read")
try:
    recording.table("nonsense")
except KeyError as error:
    assert "operations" in str(error)
print("example: passed", operations.num_rows, "operations")
