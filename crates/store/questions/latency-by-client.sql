-- Latency by client
-- Which clients take the time, and their latency. busy_percent is the share of the connections'
-- busy time. timed counts operations with times of their own (later members of a compound have
-- none). Notifications and blocked locks are left out.
SELECT
  client,
{latency_columns}
FROM operations
WHERE waits IS NOT TRUE
GROUP BY client
ORDER BY sum(busy_ns) DESC NULLS LAST, client
LIMIT 100
