-- What makes slow scenarios slow
-- Compares the slowest 5 % of the executions of each scenario with the faster half: operations per
-- execution and their time, by command. The commands where slow_ns is far above usual_ns make the
-- difference; extra_percent is the command's share of the additional time. Scenarios with a single
-- execution are left out.
WITH ranked AS (
  SELECT
    recording, scenario_run, scenario,
    percent_rank() OVER (PARTITION BY scenario ORDER BY response_ns) AS place
  FROM scenarios
  WHERE phase = 'measured' AND response_ns IS NOT NULL
),
chosen AS (
  SELECT recording, scenario_run, scenario, place >= 0.95 AS slow
  FROM ranked
  WHERE place >= 0.95 OR place <= 0.5
),
executions AS (
  SELECT
    scenario,
    CAST(count(*) FILTER (WHERE slow) AS DOUBLE) AS slow,
    CAST(count(*) FILTER (WHERE NOT slow) AS DOUBLE) AS usual
  FROM chosen
  GROUP BY scenario
),
commands AS (
  SELECT
    c.scenario,
    o.command,
    count(*) FILTER (WHERE c.slow) AS slow_operations,
    count(*) FILTER (WHERE NOT c.slow) AS usual_operations,
    coalesce(sum(o.elapsed_ns) FILTER (WHERE c.slow), 0) AS slow_ns,
    coalesce(sum(o.elapsed_ns) FILTER (WHERE NOT c.slow), 0) AS usual_ns
  FROM operations o
  JOIN chosen c ON c.recording = o.recording AND c.scenario_run = o.scenario_run
  WHERE o.waits IS NOT TRUE
  GROUP BY c.scenario, o.command
),
compared AS (
  SELECT
    c.scenario,
    c.command,
    CAST(e.slow AS BIGINT) AS slow_executions,
    CAST(e.usual AS BIGINT) AS usual_executions,
    round(c.slow_operations / nullif(e.slow, 0), 2) AS slow_operations,
    round(c.usual_operations / nullif(e.usual, 0), 2) AS usual_operations,
    CAST(c.slow_ns / nullif(e.slow, 0) AS BIGINT) AS slow_ns,
    CAST(c.usual_ns / nullif(e.usual, 0) AS BIGINT) AS usual_ns
  FROM commands c
  JOIN executions e ON e.scenario = c.scenario
)
SELECT
  *,
  round(
    100.0 * (slow_ns - usual_ns)
      / nullif(sum(slow_ns - usual_ns) OVER (PARTITION BY scenario), 0),
    1
  ) AS extra_percent
FROM compared
ORDER BY scenario, slow_ns - usual_ns DESC NULLS LAST, command
LIMIT 200
