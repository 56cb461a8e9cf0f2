-- Busiest stacks of interrupts and deferred work
-- The chains of calls that most samples hit while a processor ran interrupts or deferred work, from
-- the innermost call outwards. percent is the share of all such samples. Needs a trace with samples
-- and stacks.
WITH hits AS (
  SELECT recording, stack, count(*) AS samples, count(DISTINCT cpu) AS cpus
  FROM samples
  WHERE during IS NOT NULL AND stack IS NOT NULL
  GROUP BY recording, stack
), busiest AS (
  SELECT *, 100.0 * samples / sum(samples) OVER () AS percent
  FROM hits
  ORDER BY samples DESC, stack
  LIMIT 30
), chains AS (
  SELECT
    busiest.recording, busiest.stack,
    string_agg(
      coalesce(stacks.module || '!' || stacks.function, stacks.function, stacks.module, 'unknown'),
      ' < ' ORDER BY stacks.depth
    ) AS calls
  FROM busiest
  JOIN stacks ON stacks.recording = busiest.recording AND stacks.stack = busiest.stack
  GROUP BY busiest.recording, busiest.stack
)
SELECT
  busiest.samples,
  round(busiest.percent, 2) AS percent,
  busiest.cpus,
  chains.calls
FROM busiest
JOIN chains ON chains.recording = busiest.recording AND chains.stack = busiest.stack
ORDER BY busiest.samples DESC, chains.calls
