-- Scenarios over time
-- In intervals of ten seconds by scheduled time: number of scenarios, failures, delay of the start
-- and response time. Shows when a server stalled.
SELECT
  to_timestamp_seconds(s.scheduled_at / 10000000000 * 10) AS ten_seconds,
  max(t.users) AS users,
  max(s.phase) AS phase,
  count(*) AS scheduled,
  count(s.ended_at) AS ended,
  count(*) FILTER (WHERE s.outcome = 'failed') AS failed,
  percentile(s.response_ns, 0.5) AS response_ns_p50,
  percentile(s.response_ns, 0.95) AS response_ns_p95,
  max(s.response_ns) AS response_ns_max,
  max(s.late_ns) AS late_ns_max
FROM scenarios s
LEFT JOIN steps t ON t.recording = s.recording AND t.step = s.step
GROUP BY 1
ORDER BY 1
