-- Think time by client
-- How long clients pause between a response and their next request while nothing is in flight: time
-- that a faster server would not save.
SELECT
  client,
  count(*) AS operations,
  count(client_gap_ns) AS gaps,
  sum(client_gap_ns) AS gap_ns,
  percentile(client_gap_ns, 0.5) AS gap_ns_p50,
  percentile(client_gap_ns, 0.95) AS gap_ns_p95,
  max(client_gap_ns) AS gap_ns_max,
  sum(busy_ns) AS busy_ns
FROM operations
GROUP BY client
ORDER BY gap_ns DESC NULLS LAST, client
LIMIT 100
