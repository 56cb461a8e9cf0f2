-- Signing, encryption and dialects
-- How each connection is protected, and what was negotiated.
SELECT
  recording,
  connection,
  client,
  server,
  dialect,
  operations,
  signed,
  encrypted,
  compressed,
  signing_required,
  signing_algorithm,
  cipher,
  compression
FROM connections
ORDER BY operations DESC, recording, connection
LIMIT 100
