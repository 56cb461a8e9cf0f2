-- Responses other than success
-- Every other NTSTATUS by command, most frequent first. Not all are failures: a directory listing
-- ends with STATUS_NO_MORE_FILES, and many clients routinely try names that do not exist.
-- STATUS_MORE_PROCESSING_REQUIRED, a step of every logon, is left out.
SELECT
  command,
  status_name,
  CASE WHEN status >= 3221225472 OR status_name LIKE 'ERR%' THEN 'error'
    WHEN status >= 2147483648 THEN 'warning' ELSE 'information' END AS severity,
  count(*) AS operations,
  count(DISTINCT client) AS clients,
  count(DISTINCT path) AS paths,
  max(path) AS example_path
FROM operations
WHERE status <> 0 AND status_name <> 'STATUS_MORE_PROCESSING_REQUIRED'
GROUP BY command, status_name, status
ORDER BY operations DESC, command, status_name
LIMIT 100
