-- Latency by user
-- Which users take the time, and their latency. The user is null if the logon was not captured.
-- busy_percent is the share of the connections' busy time. timed counts operations with times of
-- their own (later members of a compound have none). Notifications and blocked locks are left out.
-- Names that differ only in case are combined.
SELECT
  min("user") AS "user",
{latency_columns}
FROM operations
WHERE waits IS NOT TRUE
GROUP BY lower("user")
ORDER BY sum(busy_ns) DESC NULLS LAST, 1
LIMIT 100
