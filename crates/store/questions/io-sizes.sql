-- Sizes of reads and writes
-- Reads and writes by size in powers of two: their number, their duration and the bytes that were
-- transferred.
SELECT
  command,
  CASE WHEN requested_bytes = 0 THEN 0
       ELSE CAST(power(2, ceil(log2(CAST(requested_bytes AS DOUBLE)))) AS BIGINT) END AS requested_bytes_up_to,
  count(*) AS operations,
  sum(requested_bytes) AS requested_bytes,
  sum(transferred_bytes) AS transferred_bytes,
  percentile(elapsed_ns, 0.5) AS elapsed_ns_p50,
  percentile(elapsed_ns, 0.95) AS elapsed_ns_p95
FROM operations
WHERE requested_bytes IS NOT NULL
  AND command IN ('Read', 'ReadAndX', 'ReadRaw', 'ReadMpx', 'LockAndRead',
    'Write', 'WriteAndX', 'WriteRaw', 'WriteMpx', 'WriteAndUnlock', 'WriteAndClose')
GROUP BY 1, 2
ORDER BY 1, 2
