-- Server time by command and share
-- Whether the time at the server goes to the queue, to its own processing (with parsing),
-- to signing and encryption, to the file system (with waiting for an I/O thread, I/O and flushing), to locks
-- and breaks, or to the wire (sending, and transfer of request and response). Parts are in percent
-- of the time from the first byte of the request to the last byte of the response. unexplained is
-- the turnaround minus all slices. server_percent is the share of the time of all slices. Needs a
-- recording from inside a server. Operations that wait by design are left out.
WITH parts AS (
  SELECT
    command, share,
    -- The lead of a compound has the turnaround of the whole chain.
    CASE WHEN compound IS NULL THEN turnaround_ns END AS turnaround_ns,
    {queue} AS queue,
    {processing} AS processing,
    {security} AS security,
    {filesystem} AS filesystem,
    {locks} AS locks,
    {send} AS send,
    coalesce(request_transfer_ns, 0) + coalesce(response_transfer_ns, 0) AS transfer
  FROM operations
  WHERE waits IS NOT TRUE
    AND coalesce({part_columns}) IS NOT NULL
), sums AS (
  SELECT
    *, queue + processing + security + filesystem + locks + send AS server,
    coalesce(turnaround_ns - (queue + processing + security + filesystem + locks + send), 0) AS unexplained
  FROM parts
)
SELECT
  command,
  share,
  count(*) AS operations,
  round(100.0 * sum(server) / sum(sum(server)) OVER (), 2) AS server_percent,
  percentile(server, 0.5) AS server_ns_p50,
  percentile(server, 0.95) AS server_ns_p95,
  round(100.0 * sum(queue) / nullif(sum(server + unexplained + transfer), 0), 1) AS queue_percent,
  round(100.0 * sum(processing) / nullif(sum(server + unexplained + transfer), 0), 1) AS processing_percent,
  round(100.0 * sum(security) / nullif(sum(server + unexplained + transfer), 0), 1) AS security_percent,
  round(100.0 * sum(filesystem) / nullif(sum(server + unexplained + transfer), 0), 1) AS filesystem_percent,
  round(100.0 * sum(locks) / nullif(sum(server + unexplained + transfer), 0), 1) AS locks_percent,
  round(100.0 * sum(send + transfer) / nullif(sum(server + unexplained + transfer), 0), 1) AS wire_percent,
  round(100.0 * sum(unexplained) / nullif(sum(server + unexplained + transfer), 0), 1) AS unexplained_percent
FROM sums
GROUP BY command, share
ORDER BY sum(server) DESC, command, share
LIMIT 100
