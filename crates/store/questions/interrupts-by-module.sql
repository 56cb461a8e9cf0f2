-- Interrupts by module or name
-- Which drivers (Windows: modules; Linux: softirqs, handlers, devices) take the time of the
-- processors. time_percent is the share of all interrupt time. exclusive_ns excludes what ran
-- within. over_limit counts those that took longer than 100 us (deferred work) or 25 us (handlers
-- of interrupts). Sums (`xperf -a dpcisr`) have no percentiles; their times include what ran within,
-- and over_limit is known only if the limit is a bound of their histogram. Needs a trace of processors.
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
), parts AS (
  SELECT
    *,
    CASE WHEN kind IN ('isr', 'isr_msi', 'irq', 'ipi') THEN 25000 ELSE 100000 END AS limit_ns
  FROM interrupt_totals
  WHERE name IS NOT NULL
), of_totals AS (
  SELECT
    kind,
    name,
    sum(CASE WHEN above_ns IS NOT NULL THEN count END) AS count,
    sum(CASE WHEN cpu IS NOT NULL THEN duration_ns END) AS exclusive_ns,
    sum(CASE WHEN above_ns >= limit_ns THEN count ELSE 0 END) AS over_limit_least,
    sum(CASE WHEN above_ns IS NOT NULL AND (up_to_ns IS NULL OR up_to_ns > limit_ns) THEN count ELSE 0 END) AS over_limit_most,
    count(DISTINCT CASE WHEN duration_ns > 0 THEN cpu END) AS cpus
  FROM parts
  GROUP BY kind, name
), both AS (
  SELECT * FROM sums
  UNION ALL
  SELECT
    kind,
    name,
    count,
    exclusive_ns,
    round(CAST(exclusive_ns AS DOUBLE) / nullif(count, 0)) AS duration_ns_mean,
    NULL AS duration_ns_p50,
    NULL AS duration_ns_p95,
    NULL AS duration_ns_p99,
    NULL AS duration_ns_max,
    CASE WHEN count IS NOT NULL AND over_limit_least = over_limit_most THEN over_limit_least END AS over_limit,
    cpus
  FROM of_totals
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
FROM both
ORDER BY exclusive_ns DESC NULLS LAST, count DESC, kind, name
LIMIT 100
