-- Handles left open
-- Opens without a Close, longest open first: still open at the end, or ended by a TreeDisconnect, a
-- Logoff or the end of the connection. Some are normal: the recording ended, or a client keeps a
-- handle under a lease.
SELECT
  h.client,
  h."user",
  h.share,
  h.path,
  h.opened_at,
  coalesce(h.closed_at, c.ended_at) - h.opened_at AS open_ns,
  CASE WHEN h.closed_at IS NOT NULL THEN coalesce(o.command, 'connection') END AS ended_by,
  h.operations,
  h.lease,
  h.durable
FROM handles h
LEFT JOIN (SELECT recording, max(ended_at) AS ended_at FROM coverage GROUP BY recording) c
  ON c.recording = h.recording
LEFT JOIN (
  SELECT recording, operation, command
  FROM operations
  WHERE command IN ('TreeDisconnect', 'Logoff', 'LogoffAndX')
) o
  ON o.recording = h.recording AND o.operation = h.close_operation
WHERE h.close_operation IS NULL OR o.command IS NOT NULL
ORDER BY open_ns DESC NULLS FIRST, h.client, h.path
LIMIT 100
