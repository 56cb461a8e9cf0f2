-- Operations longest at the server
-- The operations with the longest time at a server, of recordings from inside it, with their slices;
-- disk and off-processor time lie within the others. server_ns is the turnaround; in a compound, of
-- which the lead has the whole chain's, the sum of the slices. The table slices says when each slice
-- began (where recording and operation are the same). What waits by design is left out.
WITH sums AS (
  SELECT
    *, coalesce(queue_ns, 0) + coalesce(crypto_in_ns, 0) + coalesce(parse_ns, 0)
      + coalesce(processing_ns, 0) + coalesce(filesystem_ns, 0) + coalesce(io_wait_ns, 0)
      + coalesce(io_ns, 0) + coalesce(flush_ns, 0) + coalesce(lock_wait_ns, 0)
      + coalesce(crypto_out_ns, 0) + coalesce(send_ns, 0) AS slices_ns
  FROM operations
  WHERE waits IS NOT TRUE
    AND coalesce(queue_ns, crypto_in_ns, parse_ns, processing_ns, filesystem_ns, io_wait_ns, io_ns,
      flush_ns, lock_wait_ns, crypto_out_ns, send_ns) IS NOT NULL
)
SELECT
  recording, operation, command, detail, status_name, client, share, path,
  coalesce(CASE WHEN compound IS NULL THEN turnaround_ns END, slices_ns) AS server_ns,
  queue_ns, crypto_in_ns, parse_ns, processing_ns, filesystem_ns, io_wait_ns, io_ns, flush_ns,
  lock_wait_ns, crypto_out_ns, send_ns, disk_ns, offcpu_ns
FROM sums
ORDER BY coalesce(CASE WHEN compound IS NULL THEN turnaround_ns END, slices_ns) DESC,
  recording, operation
LIMIT 25
