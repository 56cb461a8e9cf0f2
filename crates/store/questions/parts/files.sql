SELECT
  share,
  path,
  sum(busy_ns) AS busy_ns,
  count(*) AS operations,
  count(*) FILTER (
    WHERE command IN ('Create', 'NtCreateAndX', 'OpenAndX', 'Open', 'CreateNew', 'CreateTemporary')
      OR detail LIKE 'Trans2Open2%' OR detail = 'NtTransactCreate'
  ) AS opens,
  count(DISTINCT client) AS clients,
  sum(transferred_bytes) FILTER (
    WHERE command IN ('Read', 'ReadAndX', 'ReadRaw', 'ReadMpx', 'LockAndRead')
  ) AS read_bytes,
  sum(transferred_bytes) FILTER (
    WHERE command IN ('Write', 'WriteAndX', 'WriteRaw', 'WriteMpx', 'WriteAndUnlock', 'WriteAndClose')
  ) AS written_bytes,
  max(elapsed_ns) AS elapsed_ns_max
FROM operations
WHERE path IS NOT NULL AND waits IS NOT TRUE
GROUP BY share, path
