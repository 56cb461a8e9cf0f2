-- Handles left open
-- Opens without a Close in the recording, longest open first. Some are normal: the recording ended,
-- or a client keeps a handle under a lease.
SELECT
  h.client,
  h."user",
  h.share,
  h.path,
  h.opened_at,
  c."end" - h.opened_at AS open_ns,
  h.operations,
  h.lease,
  h.durable
FROM handles h
LEFT JOIN (SELECT recording, max("end") AS "end" FROM coverage GROUP BY recording) c
  ON c.recording = h.recording
WHERE h.closed_at IS NULL
ORDER BY h.opened_at NULLS FIRST, h.client, h.path
LIMIT 100
