-- Overload and response time by number of users
-- One line for each step of a load run; machines that share a run are combined. overload_percent is
-- defined in docs/method/overload.md (machines weighted by their users). scenarios_per_second counts
-- scenarios that ended without an error. response counts from the scheduled time; late is the delay
-- of the start.
WITH load AS (
  SELECT
    run, step,
    count(*) AS machines,
    max(users) AS users,
    sum(users_overloaded) AS users_behind,
    sum(overload_percent * users_here) / nullif(sum(users_here), 0) AS overload_percent,
    sum(completed) AS completed,
    sum(failed) AS failed,
    sum(rate) AS rate,
    sum(1e9 * (completed - failed) / nullif(ended_at - started_at, 0)) AS throughput,
    round((min(ended_at) - max(started_at)) / 1e9, 3) AS seconds,
    bool_or(limited_by_client) AS limited_by_client
  FROM steps
  GROUP BY run, step
),
response AS (
  SELECT
    t.run, t.step,
    count(s.response_ns) AS timed,
    percentile(s.response_ns, 0.5) AS response_ns_p50,
    percentile(s.response_ns, 0.95) AS response_ns_p95,
    percentile(s.response_ns, 0.99) AS response_ns_p99,
    max(s.late_ns) AS late_ns_max
  FROM scenarios s
  JOIN steps t ON t.recording = s.recording AND t.step = s.step
  WHERE s.phase = 'measured'
  GROUP BY t.run, t.step
)
SELECT
  load.run,
  load.step,
  load.users,
  load.machines,
  round(load.overload_percent, 2) AS overload_percent,
  load.users_behind,
  round(load.rate, 3) AS scheduled_per_second,
  round(load.throughput, 3) AS scenarios_per_second,
  load.failed AS errors,
  round(100.0 * load.failed / nullif(load.completed, 0), 2) AS errors_percent,
  load.seconds,
  response.timed,
  response.response_ns_p50,
  response.response_ns_p95,
  response.response_ns_p99,
  response.late_ns_max,
  load.limited_by_client
FROM load
LEFT JOIN response ON response.run = load.run AND response.step = load.step
ORDER BY load.run, load.users, load.step
