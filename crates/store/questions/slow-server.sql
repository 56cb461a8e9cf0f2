-- Operations longest at the server
-- The operations with the longest turnaround of a recording from inside a server, with their slices;
-- disk and off-processor time lie within the others. The table slices says when each slice began
-- (where recording and operation are the same). What waits by design is left out.
SELECT
  recording, operation, command, detail, status_name, client, share, path, turnaround_ns,
  queue_ns, crypto_in_ns, parse_ns, processing_ns, filesystem_ns, io_wait_ns, io_ns, flush_ns,
  lock_wait_ns, crypto_out_ns, send_ns, disk_ns, offcpu_ns
FROM operations
WHERE waits IS NOT TRUE AND turnaround_ns IS NOT NULL
  AND coalesce(queue_ns, crypto_in_ns, parse_ns, processing_ns, filesystem_ns, io_wait_ns, io_ns,
    flush_ns, lock_wait_ns, crypto_out_ns, send_ns) IS NOT NULL
ORDER BY turnaround_ns DESC, recording, operation
LIMIT 25
