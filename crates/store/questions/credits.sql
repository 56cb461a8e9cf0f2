-- Credits
-- Credits that clients requested and received on each connection, and whether credits limited them.
-- A client waited for credits if credits_min is near zero while outstanding_max is high.
SELECT
  c.recording,
  c.connection,
  c.client,
  c.dialect,
  c.credits_max,
  c.credits_min,
  c.outstanding_max,
  o.charged,
  o.requested,
  o.granted
FROM connections c
LEFT JOIN (
  SELECT
    recording,
    connection,
    sum(credit_charge) AS charged,
    sum(credits_requested) AS requested,
    sum(credits_granted) AS granted
  FROM operations
  GROUP BY recording, connection
) o ON o.connection = c.connection AND o.recording = c.recording
ORDER BY c.credits_min NULLS LAST, c.recording, c.connection
LIMIT 100
