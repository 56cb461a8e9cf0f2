-- Latency by command
-- Which commands take the time, with percentiles from request to response and of the server alone.
-- busy_percent is the share of the connections' busy time. timed counts operations with times of
-- their own (later members of a compound have none). Notifications and blocked locks are left out.
SELECT
  command,
{latency_columns}
FROM operations
WHERE waits IS NOT TRUE
GROUP BY command
ORDER BY sum(busy_ns) DESC NULLS LAST, command
LIMIT 100
