-- Oplock and lease breaks
-- Which files' caching rights the server took back, from what state to what: files that several
-- clients want at once.
SELECT
  share,
  path,
  client,
  detail,
  lease_requested AS lease_before,
  lease_granted AS lease_after,
  oplock_granted AS oplock_after,
  count(*) AS breaks
FROM operations
WHERE command = 'OplockBreak'
GROUP BY share, path, client, detail, lease_requested, lease_granted, oplock_granted
ORDER BY breaks DESC, share, path, client
LIMIT 50
