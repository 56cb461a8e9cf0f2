-- Counters of server and client by load
-- The mean of every counter in the measured window of each step. Counters that grow with the users
-- differ from those at their limit: a counter that stops growing while response times rise marks
-- the saturated resource.
SELECT
  c.recording,
  c.source,
  c.name,
  c.instance,
  c.unit,
  t.users,
  t.step,
  count(*) AS samples,
  round(avg(c.value), 3) AS mean,
  round(min(c.value), 3) AS least,
  round(max(c.value), 3) AS most
FROM counters c
JOIN steps t ON t.recording = c.recording AND c.time >= t.started_at AND c.time < t.ended_at
GROUP BY c.recording, c.source, c.name, c.instance, c.unit, t.users, t.step
ORDER BY c.source, c.name, c.instance, c.recording, t.users, t.step
LIMIT 1000
