-- How devices' work spreads over processors
-- On how many processors, queues and NUMA nodes the handlers and polls of each device ran.
-- busiest_percent is the share of the runs on the processor with most of them: 100 means that one
-- processor does it all. work counts packets of polls. Needs a trace of processors that names devices
-- (Linux).
WITH by_cpu AS (
  SELECT
    interrupts.recording, device, interrupts.cpu, max(cpus.node) AS node,
    count(*) AS runs, sum(exclusive_ns) AS exclusive_ns, sum(work) AS work
  FROM interrupts
  LEFT JOIN cpus ON cpus.recording = interrupts.recording AND cpus.cpu = interrupts.cpu
  WHERE device IS NOT NULL
  GROUP BY interrupts.recording, device, interrupts.cpu
), queues AS (
  SELECT recording, device, count(DISTINCT queue) AS queues
  FROM interrupts
  WHERE device IS NOT NULL
  GROUP BY recording, device
), sums AS (
  SELECT
    recording, device,
    count(*) AS cpus,
    count(DISTINCT node) AS nodes,
    sum(runs) AS runs,
    max(runs) AS most_runs,
    sum(work) AS work,
    sum(exclusive_ns) AS exclusive_ns
  FROM by_cpu
  GROUP BY recording, device
)
SELECT
  sums.device,
  sums.cpus,
  queues.queues,
  sums.nodes,
  sums.runs,
  round(100.0 * most_runs / runs, 2) AS busiest_percent,
  sums.work,
  sums.exclusive_ns
FROM sums
JOIN queues ON queues.recording = sums.recording AND queues.device = sums.device
ORDER BY sums.runs DESC, sums.device
LIMIT 1000
