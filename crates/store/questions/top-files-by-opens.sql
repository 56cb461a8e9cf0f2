-- Files and directories by opens
-- Which names were opened most often, successfully or not.
{files}
ORDER BY opens DESC, share, path
LIMIT 50
