-- Response times by scenario and load
-- Scenarios scheduled in measured windows, by number of users. response counts from the scheduled
-- time; late is the part of it before the start. timed counts scenarios that ended.
SELECT
  t.users,
  s.scenario,
  count(*) AS scheduled,
  count(s.response_ns) AS timed,
  count(*) FILTER (WHERE s.outcome = 'failed') AS failed,
  count(*) FILTER (WHERE s.outcome = 'not started') AS not_started,
  percentile(s.response_ns, 0.5) AS response_ns_p50,
  percentile(s.response_ns, 0.95) AS response_ns_p95,
  percentile(s.response_ns, 0.99) AS response_ns_p99,
  max(s.response_ns) AS response_ns_max,
  percentile(s.late_ns, 0.95) AS late_ns_p95,
  round(avg(s.operations), 2) AS operations_mean
FROM scenarios s
LEFT JOIN steps t ON t.recording = s.recording AND t.step = s.step
WHERE s.phase = 'measured'
GROUP BY t.users, s.scenario
ORDER BY t.users, s.scenario
