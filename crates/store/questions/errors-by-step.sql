-- Scenarios that failed or never started
-- By load, phase, scenario and the status or connection error that made them fail, with the
-- affected users and the time of the first failure.
SELECT
  t.users,
  s.phase,
  s.outcome,
  s.status_name,
  s.scenario,
  count(*) AS scenarios,
  count(DISTINCT s.user_number) AS users_hit,
  sum(s.errors) AS operations_failed,
  to_timestamp_nanos(min(coalesce(s.ended_at, s.scheduled_at))) AS first
FROM scenarios s
LEFT JOIN steps t ON t.recording = s.recording AND t.step = s.step
WHERE s.outcome <> 'done'
GROUP BY t.users, s.phase, s.outcome, s.status_name, s.scenario
ORDER BY t.users, scenarios DESC, s.phase, s.outcome, s.status_name, s.scenario
LIMIT 200
