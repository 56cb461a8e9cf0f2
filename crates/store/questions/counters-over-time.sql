-- Counters of server and client over time
-- Mean, minimum and maximum of every counter in intervals of ten seconds, on the clock of the run.
SELECT
  to_timestamp_seconds(time / 10000000000 * 10) AS ten_seconds,
  recording,
  source,
  name,
  instance,
  unit,
  count(*) AS samples,
  round(avg(value), 3) AS mean,
  round(min(value), 3) AS least,
  round(max(value), 3) AS most
FROM counters
GROUP BY 1, recording, source, name, instance, unit
ORDER BY source, name, instance, recording, 1
LIMIT 10000
