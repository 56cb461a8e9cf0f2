-- Oplock and lease breaks
-- Which files lost caching rights (oplock or lease state before and after the break): files that
-- several clients use at the same time. A lease break contains no file name; the file is that of an
-- earlier open with the same lease key. Acknowledgments are left out.
WITH leases AS (
  SELECT recording, client, lease_key, max(share) AS share, max(path) AS path
  FROM operations
  WHERE command = 'Create' AND lease_key IS NOT NULL
  GROUP BY recording, client, lease_key
)
SELECT
  coalesce(o.share, l.share) AS share,
  coalesce(o.path, l.path) AS path,
  o.client,
  o.detail,
  o.lease_requested AS lease_before,
  o.lease_granted AS lease_after,
  o.oplock_granted AS oplock_after,
  count(*) AS breaks
FROM operations o
LEFT JOIN leases l
  ON l.recording = o.recording AND l.client = o.client AND l.lease_key = o.lease_key
WHERE o.command = 'OplockBreak' AND o.request_start IS NULL
  AND coalesce(o.detail, '') NOT LIKE '%acknowledgement'
GROUP BY 1, 2, 3, 4, 5, 6, 7
ORDER BY breaks DESC, 1, 2, 3, 4, 5, 6
LIMIT 50
