-- Interrupts by module or name
-- Which drivers (Windows: modules; Linux: softirqs, handlers, devices) take the time of the
-- processors. time_percent is the share of all interrupt time. exclusive_ns excludes what ran
-- within. over_limit counts those that took longer than 100 us (deferred work) or 25 us (handlers
-- of interrupts). Needs a trace of processors.
WITH sums AS (
  SELECT
    kind,
    name,
    count(*) AS count,
    sum(exclusive_ns) AS exclusive_ns,
    round(avg(duration_ns)) AS duration_ns_mean,
    percentile(duration_ns, 0.5) AS duration_ns_p50,
    percentile(duration_ns, 0.95) AS duration_ns_p95,
    percentile(duration_ns, 0.99) AS duration_ns_p99,
    max(duration_ns) AS duration_ns_max,
    sum(CASE WHEN duration_ns > CASE WHEN kind IN ('isr', 'isr_msi', 'irq', 'ipi') THEN 25000 ELSE 100000 END THEN 1 ELSE 0 END) AS over_limit,
    count(DISTINCT cpu) AS cpus
  FROM interrupts
  GROUP BY kind, name
)
SELECT
  kind,
  name,
  count,
  exclusive_ns,
  round(100.0 * exclusive_ns / nullif(sum(exclusive_ns) OVER (), 0), 2) AS time_percent,
  duration_ns_mean,
  duration_ns_p50,
  duration_ns_p95,
  duration_ns_p99,
  duration_ns_max,
  over_limit,
  cpus
FROM sums
ORDER BY exclusive_ns DESC NULLS LAST, count DESC, kind, name
LIMIT 100
