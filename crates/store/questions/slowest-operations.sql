-- Slowest operations
-- The operations with the longest time from the first byte of the request to the last byte of the
-- response, with the frames to look at in Wireshark. Notifications and blocked locks are left out.
SELECT
  recording, operation, capture_file, command, detail, status_name, client, share, path,
  elapsed_ns, server_ns, request_transfer_ns, response_transfer_ns, outstanding,
  transferred_bytes, request_frame, response_frame
FROM operations
WHERE waits IS NOT TRUE AND elapsed_ns IS NOT NULL
ORDER BY elapsed_ns DESC, recording, operation
LIMIT 25
