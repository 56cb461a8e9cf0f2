-- Latency by client
-- Which clients take the time, and their latency. busy_percent is the share of the connections'
-- busy time. timed counts operations with times of their own (later members of a compound have
-- none). Notifications and blocked locks are left out.
SELECT
  client,
  count(*) AS operations,
  round(100.0 * sum(busy_ns) / sum(sum(busy_ns)) OVER (), 2) AS busy_percent,
  count(elapsed_ns) AS timed,
  percentile(elapsed_ns, 0.5) AS elapsed_ns_p50,
  percentile(elapsed_ns, 0.95) AS elapsed_ns_p95,
  percentile(elapsed_ns, 0.99) AS elapsed_ns_p99,
  max(elapsed_ns) AS elapsed_ns_max,
  percentile(server_ns, 0.5) AS server_ns_p50,
  percentile(server_ns, 0.95) AS server_ns_p95,
  sum(transferred_bytes) AS transferred_bytes
FROM operations
WHERE waits IS NOT TRUE
GROUP BY client
ORDER BY sum(busy_ns) DESC NULLS LAST, client
LIMIT 100
