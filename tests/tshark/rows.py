"""What smbscope sees in a capture: the rows of `smbscope ops FILE --format csv`.

Owns: running it, and its columns as Python values. Only the columns that the comparison needs.
"""

import csv
import io
import subprocess
from dataclasses import dataclass

NUMBERS = (
    "protocol", "message_id", "status", "session_id", "compound", "compound_index",
    "connection", "client_port", "server_port", "request_start", "request_end", "pending_at",
    "response_start", "response_end", "request_frame", "response_frame",
)  # fmt: skip
TEXTS = ("command", "detail", "client", "server", "user", "share", "path")
COLUMNS = (*NUMBERS, *TEXTS, "encrypted")


@dataclass(slots=True)
class Row:
    """One row; None where the column is null."""

    protocol: int | None
    message_id: int | None
    status: int | None
    session_id: int | None
    compound: int | None
    compound_index: int | None
    connection: int | None
    client_port: int | None
    server_port: int | None
    request_start: int | None
    request_end: int | None
    pending_at: int | None
    response_start: int | None
    response_end: int | None
    request_frame: int | None
    response_frame: int | None
    command: str | None
    detail: str | None
    client: str | None
    server: str | None
    user: str | None
    share: str | None
    path: str | None
    encrypted: bool
    stream: int | None = None
    # The compound's first row, where its times stand.
    lead: "Row | None" = None

    @property
    def frame(self):
        return self.request_frame or self.response_frame

    @property
    def timed(self):
        """The row that has the operation's times."""
        return self.lead or self

    def identity(self):
        """What must not change when the capture is cut to headers."""
        return (
            self.client, self.client_port, self.server, self.server_port, self.protocol,
            self.command, self.message_id, self.status, self.compound_index,
        )  # fmt: skip

    def times(self):
        return (self.request_start, self.request_end, self.response_start, self.response_end)


def read(program, path, keys=()):
    command = [program, "ops", str(path), "--format", "csv", "--columns", ",".join(COLUMNS)]
    for key in keys:
        command += ["--key", key]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}")
    rows = []
    for line in csv.DictReader(io.StringIO(done.stdout)):
        values = {name: int(line[name]) if line[name] else None for name in NUMBERS}
        values |= {name: line[name] or None for name in TEXTS}
        rows.append(Row(**values, encrypted=line["encrypted"] == "true"))
    leads = {
        (row.connection, row.compound): row
        for row in rows
        if row.compound is not None and row.compound_index == 0
    }
    for row in rows:
        if row.compound is not None and row.compound_index:
            row.lead = leads.get((row.connection, row.compound))
    return rows
