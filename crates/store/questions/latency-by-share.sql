-- Latency by share
-- Which shares take the time. The share is null before a tree connect, or if the tree connect was
-- not captured. busy_percent is the share of the connections' busy time. timed counts operations
-- with times of their own (later members of a compound have none). Notifications and blocked locks
-- are left out. Names that differ only in case are combined.
SELECT
  min(share) AS share,
{latency_columns}
FROM operations
WHERE waits IS NOT TRUE
GROUP BY lower(share)
ORDER BY sum(busy_ns) DESC NULLS LAST, 1
LIMIT 100
