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
    "requested_bytes", "request_wire_bytes", "response_wire_bytes", "server_ns",
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
    requested_bytes: int | None
    request_wire_bytes: int | None
    response_wire_bytes: int | None
    server_ns: int | None
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
    def sent(self):
        """End of the request; a compound's is that of its lead."""
        if self.request_end is None and self.lead is not None:
            return self.lead.request_end
        return self.request_end

    @property
    def answered(self):
        """End of the final reply; the lead's where both came in one message."""
        lead = self.lead
        if self.response_end is None and lead and lead.response_frame == self.response_frame:
            return lead.response_end
        return self.response_end

    def identity(self):
        """What must not change when the capture is cut to headers."""
        return (
            self.client, self.client_port, self.server, self.server_port, self.protocol,
            self.command, self.message_id, self.status, self.compound_index,
        )  # fmt: skip

    def request(self):
        return self.request_start, self.request_end, self.request_wire_bytes

    def response(self):
        return self.response_start, self.response_end, self.response_wire_bytes


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
