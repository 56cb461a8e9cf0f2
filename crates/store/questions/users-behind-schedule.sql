-- Users who fell behind their schedule
-- The users with the latest starts in measured windows, by step. If no user is behind for long, the
-- server keeps up. If only a few users are far behind, look at their files or their connection.
SELECT
  t.users,
  s.step,
  s.user_number,
  count(*) AS scheduled,
  count(*) FILTER (WHERE s.late_ns > 1000000000) AS late_by_a_second,
  count(*) FILTER (WHERE s.outcome = 'not started') AS not_started,
  max(s.late_ns) AS late_ns_max,
  CAST(avg(s.late_ns) AS BIGINT) AS late_ns_mean,
  max(s.response_ns) AS response_ns_max
FROM scenarios s
LEFT JOIN steps t ON t.recording = s.recording AND t.step = s.step
WHERE s.phase = 'measured'
GROUP BY t.run, t.users, s.step, s.user_number
ORDER BY late_ns_max DESC NULLS LAST, s.step, s.user_number
LIMIT 50
