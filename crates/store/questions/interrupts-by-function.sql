-- Interrupts by function
-- Which functions (Windows: routines of drivers) take the time of the processors. function is null
-- without symbols of the module (--symbols); then routine_offset distinguishes its routines.
-- time_percent is the share of all interrupt time. Needs a trace of processors.
WITH sums AS (
  SELECT
    kind,
    name,
    function,
    CASE WHEN function IS NULL THEN routine_offset END AS routine_offset,
    count(*) AS count,
    sum(exclusive_ns) AS exclusive_ns,
    round(avg(duration_ns)) AS duration_ns_mean,
    percentile(duration_ns, 0.99) AS duration_ns_p99,
    max(duration_ns) AS duration_ns_max,
    count(DISTINCT cpu) AS cpus
  FROM interrupts
  GROUP BY kind, name, function, CASE WHEN function IS NULL THEN routine_offset END
)
SELECT
  kind,
  name,
  function,
  routine_offset,
  count,
  exclusive_ns,
  round(100.0 * exclusive_ns / nullif(sum(exclusive_ns) OVER (), 0), 2) AS time_percent,
  duration_ns_mean,
  duration_ns_p99,
  duration_ns_max,
  cpus
FROM sums
ORDER BY exclusive_ns DESC NULLS LAST, count DESC, kind, name, function, routine_offset
LIMIT 100
