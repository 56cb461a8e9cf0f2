-- Opens that fail
-- Names that clients could not open, with the status: long search paths, missing rights, sharing
-- conflicts.
SELECT
  share,
  path,
  status_name,
  count(*) AS operations,
  count(DISTINCT client) AS clients,
  count(DISTINCT "user") AS users,
  sum(busy_ns) AS busy_ns
FROM operations
WHERE (command IN ('Create', 'NtCreateAndX', 'OpenAndX', 'Open', 'CreateNew', 'CreateTemporary')
    OR detail LIKE 'Trans2Open2%' OR detail = 'NtTransactCreate')
  AND (status >= 3221225472 OR status_name LIKE 'ERR%')
GROUP BY share, path, status_name
ORDER BY operations DESC, share, path, status_name
LIMIT 50
