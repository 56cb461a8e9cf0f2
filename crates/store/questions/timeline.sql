-- Operations over time
-- For each second: operations that ended, bytes, errors (as in the report, without names that do
-- not exist and without expected statuses), latency, and the maximum of operations in flight on one
-- connection. Seconds without operations are left out.
SELECT
  to_timestamp_seconds(response_end / 1000000000) AS second,
  count(*) AS operations,
  count(*) FILTER (
    WHERE {errors}
  ) AS errors,
  sum(transferred_bytes) AS transferred_bytes,
  percentile(elapsed_ns, 0.5) AS elapsed_ns_p50,
  percentile(elapsed_ns, 0.95) AS elapsed_ns_p95,
  max(elapsed_ns) AS elapsed_ns_max,
  max(outstanding) AS outstanding_max
FROM operations
WHERE response_end IS NOT NULL AND waits IS NOT TRUE
GROUP BY 1
ORDER BY 1
