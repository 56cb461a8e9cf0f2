-- Chatty paths
-- Paths that one client opened again and again: candidates for leases, directory caching or a
-- better behaved application.
SELECT
  client,
  share,
  path,
  count(*) AS opens,
  count(*) FILTER (WHERE status >= 3221225472 OR status_name LIKE 'ERR%') AS failed,
  (max(response_end) - min(response_end)) / (count(response_end) - 1) AS interval_ns_mean,
  sum(busy_ns) AS busy_ns
FROM operations
WHERE path IS NOT NULL
  AND (command IN ('Create', 'NtCreateAndX', 'OpenAndX', 'Open', 'CreateNew', 'CreateTemporary')
    OR detail LIKE 'Trans2Open2%' OR detail = 'NtTransactCreate')
GROUP BY client, share, path
HAVING count(response_end) > 2
ORDER BY opens DESC, client, share, path
LIMIT 50
