-- Delays of interrupts and deferred work
-- From the request to the beginning, by kind and name, and on which processor the longest one was.
-- Needs a trace with requests (Linux: softirq_raise).
WITH delays AS (
  SELECT *, row_number() OVER (PARTITION BY kind, name ORDER BY delay_ns DESC, cpu) AS place
  FROM interrupts
  WHERE delay_ns IS NOT NULL
)
SELECT
  kind,
  name,
  count(*) AS n,
  round(avg(delay_ns), 0) AS delay_ns_mean,
  percentile(delay_ns, 0.5) AS delay_ns_p50,
  percentile(delay_ns, 0.99) AS delay_ns_p99,
  max(delay_ns) AS delay_ns_max,
  max(CASE WHEN place = 1 THEN cpu END) AS cpu_of_longest
FROM delays
GROUP BY kind, name
ORDER BY max(delay_ns) DESC, kind, name
LIMIT 1000
