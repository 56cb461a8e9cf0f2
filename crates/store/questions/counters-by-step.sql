-- Counters of server and client by load
-- The mean of every counter in the measured window of each step, so that what grows with the users
-- and what has reached its end can be told apart. Growth that stops while response times rise marks
-- the part that is full.
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
JOIN steps t ON t.recording = c.recording AND c.time >= t.start AND c.time < t."end"
GROUP BY c.recording, c.source, c.name, c.instance, c.unit, t.users, t.step
ORDER BY c.source, c.name, c.instance, c.recording, t.users, t.step
LIMIT 1000
