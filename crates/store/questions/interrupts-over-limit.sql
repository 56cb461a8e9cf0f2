-- Interrupts and deferred work over the limit
-- The longest runs above 100 us (deferred work) or 25 us (handlers of interrupts), on which
-- processor and when. delay_ns is the time from the request to the beginning. Needs a trace of
-- processors.
SELECT
  start,
  cpu,
  kind,
  name,
  device,
  duration_ns,
  exclusive_ns,
  delay_ns
FROM interrupts
WHERE duration_ns > CASE WHEN kind IN ('isr', 'isr_msi', 'irq', 'ipi') THEN 25000 ELSE 100000 END
ORDER BY duration_ns DESC, start, cpu
LIMIT 100
