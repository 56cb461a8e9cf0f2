-- Files and directories by time
-- Which files and directories took most of the connections' busy time.
{files}
ORDER BY busy_ns DESC NULLS LAST, share, path
LIMIT 50
