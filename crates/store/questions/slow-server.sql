-- Operations with the longest server time
-- The operations with the longest time at the server, with their slices; disk and off-processor
-- time are contained in the other slices. server_ns is the turnaround; in a compound, whose first
-- operation has the turnaround of the whole chain, it is the sum of the slices. The table slices
-- has the start of each slice (join on recording and operation). Needs a recording from inside a
-- server. Operations that wait by design are left out.
WITH sums AS (
  SELECT
    *, {parts} AS slices_ns
  FROM operations
  WHERE waits IS NOT TRUE
    AND coalesce({part_columns}) IS NOT NULL
)
SELECT
  recording, operation, command, detail, status_name, client, share, path,
  coalesce(CASE WHEN compound IS NULL THEN turnaround_ns END, slices_ns) AS server_ns,
  {slice_columns}
FROM sums
ORDER BY coalesce(CASE WHEN compound IS NULL THEN turnaround_ns END, slices_ns) DESC,
  recording, operation
LIMIT 25
