-- Idle states and frequencies
-- How long each processor was in each idle state (c_state; 0 is the lightest), and how often its
-- frequency changed to each value (kHz). Deep states and low frequencies delay interrupts. Needs a
-- trace of processors with such events.
SELECT
  cpu,
  kind,
  value,
  count(*) AS count,
  sum(duration_ns) AS duration_ns,
  max(duration_ns) AS duration_ns_max
FROM power
GROUP BY cpu, kind, value
ORDER BY cpu, kind, value
LIMIT 1000
