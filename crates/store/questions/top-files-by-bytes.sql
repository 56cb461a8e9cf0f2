-- Files by bytes
-- Which files were read and written most.
{files}
ORDER BY coalesce(read_bytes, 0) + coalesce(written_bytes, 0) DESC, share, path
LIMIT 50
