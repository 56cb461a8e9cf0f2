-- Operations over time
-- Second by second: operations that ended, bytes, errors, latency, and the most in flight on one
-- connection. Seconds without any operation do not appear.
SELECT
  to_timestamp_seconds(response_end / 1000000000) AS second,
  count(*) AS operations,
  count(*) FILTER (
    WHERE (status >= 3221225472 OR status_name LIKE 'ERR%')
      AND status_name NOT IN ('STATUS_MORE_PROCESSING_REQUIRED', 'ERRnofiles')
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
