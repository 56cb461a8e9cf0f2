-- Compounds
-- What clients send in one message, by the commands in the chain. A compound saves one round trip
-- for every member after the first.
WITH chains AS (
  SELECT
    recording,
    connection,
    compound,
    count(*) AS members,
    string_agg(coalesce(command, '(unknown)'), '+' ORDER BY compound_index) AS commands,
    max(elapsed_ns) AS elapsed_ns
  FROM operations
  WHERE compound IS NOT NULL
  GROUP BY recording, connection, compound
)
SELECT
  commands,
  count(*) AS compounds,
  sum(members) AS operations,
  percentile(elapsed_ns, 0.5) AS elapsed_ns_p50,
  percentile(elapsed_ns, 0.95) AS elapsed_ns_p95
FROM chains
GROUP BY commands
ORDER BY compounds DESC, commands
LIMIT 50
