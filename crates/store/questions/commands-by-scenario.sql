-- Operations of one execution, by scenario
-- How many operations of each command a scenario puts on the wire in one execution on average, how
-- many of them are members of a compound other than its first, and how long they take together.
-- Executions that failed or never began are left out.
WITH done AS (
  SELECT recording, scenario_run, scenario FROM scenarios WHERE outcome = 'done'
),
executions AS (
  SELECT scenario, CAST(count(*) AS DOUBLE) AS n FROM done GROUP BY scenario
)
SELECT
  d.scenario,
  o.command,
  CAST(max(e.n) AS BIGINT) AS executions,
  round(count(*) / max(e.n), 3) AS operations,
  round(count(*) FILTER (WHERE o.compound_index > 0) / max(e.n), 3) AS compound_members,
  CAST(sum(o.elapsed_ns) / max(e.n) AS BIGINT) AS elapsed_ns
FROM operations o
JOIN done d ON d.recording = o.recording AND d.scenario_run = o.scenario_run
JOIN executions e ON e.scenario = d.scenario
GROUP BY d.scenario, o.command
ORDER BY d.scenario, operations DESC, o.command
LIMIT 500
