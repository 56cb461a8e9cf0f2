-- Connections with loss
-- Connections with lost, retransmitted or late packets or a closed receive window: their latency
-- comes from the network or the receiver, not from the server. Gaps are bytes that the capture
-- itself lacks.
SELECT
  recording,
  connection,
  client,
  server,
  packets_to_server + packets_to_client AS packets,
  retransmissions_to_server,
  retransmissions_to_client,
  round(100.0 * (retransmissions_to_server + retransmissions_to_client)
    / nullif(packets_to_server + packets_to_client, 0), 3) AS retransmitted_percent,
  out_of_order_to_server,
  out_of_order_to_client,
  zero_windows_to_server,
  zero_windows_to_client,
  gap_bytes_to_server,
  gap_bytes_to_client,
  resets,
  unanswered
FROM connections
WHERE retransmissions_to_server + retransmissions_to_client + out_of_order_to_server
    + out_of_order_to_client + zero_windows_to_server + zero_windows_to_client
    + gaps_to_server + gaps_to_client > 0
ORDER BY retransmissions_to_server + retransmissions_to_client DESC, recording, connection
LIMIT 100
