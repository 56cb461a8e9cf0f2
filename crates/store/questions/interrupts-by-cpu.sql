-- Interrupts by processor
-- How much time each processor spends in interrupts and deferred work, and in what most of it.
-- deferred_ns is that of DPCs and softirqs, interrupt_ns that of handlers. cpu_percent is the share
-- of the trace's length. Sums (`xperf -a dpcisr`) have no count. Needs a trace of processors.
WITH sums AS (
  SELECT
    recording, cpu, kind, name, count(*) AS count,
    sum(exclusive_ns) AS exclusive_ns,
    sum(CASE WHEN kind IN ('isr', 'isr_msi', 'irq', 'ipi') THEN exclusive_ns ELSE 0 END) AS interrupt_ns
  FROM interrupts
  GROUP BY recording, cpu, kind, name
  UNION ALL
  SELECT
    recording, cpu, kind, name, NULL AS count,
    sum(duration_ns) AS exclusive_ns,
    sum(CASE WHEN kind IN ('isr', 'isr_msi', 'irq', 'ipi') THEN duration_ns ELSE 0 END) AS interrupt_ns
  FROM interrupt_totals
  WHERE name IS NOT NULL AND cpu IS NOT NULL
  GROUP BY recording, cpu, kind, name
), ranked AS (
  SELECT
    *, max(exclusive_ns) OVER (PARTITION BY recording, cpu) AS most_ns
  FROM sums
)
SELECT
  ranked.cpu,
  sum(count) AS count,
  sum(exclusive_ns) - sum(interrupt_ns) AS deferred_ns,
  sum(interrupt_ns) AS interrupt_ns,
  round(100.0 * sum(exclusive_ns) / nullif(max(ended_at - started_at), 0), 2) AS cpu_percent,
  max(CASE WHEN exclusive_ns = most_ns THEN name END) AS most_time_in,
  max(most_ns) AS most_time_ns
FROM ranked
LEFT JOIN traces ON traces.recording = ranked.recording
GROUP BY ranked.recording, ranked.cpu
ORDER BY sum(exclusive_ns) DESC NULLS LAST, ranked.cpu
LIMIT 1000
