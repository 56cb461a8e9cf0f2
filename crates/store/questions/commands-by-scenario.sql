-- Operations per scenario execution
-- Mean number of operations of each command in one execution of a scenario, how many of them are
-- later members of a compound, and how long they take in total. Executions that failed or never
-- started are left out.
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
