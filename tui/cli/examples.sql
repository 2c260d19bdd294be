-- The ops with most self time
SELECT name, self_time_ps FROM ops ORDER BY 2 DESC LIMIT 5;

-- The longest gaps between ops
SELECT core, name, start_ps - lag(start_ps + duration_ps)
  OVER (PARTITION BY core ORDER BY start_ps) AS gap_ps
  FROM events WHERE track = 'XLA Ops' AND depth = 0
  ORDER BY gap_ps DESC LIMIT 5;

-- Percentiles of ops
SELECT name, median(duration_ps) AS median_ps,
  quantile_cont(duration_ps, 0.99) AS p99_ps
  FROM events WHERE track = 'XLA Ops' GROUP BY name
  ORDER BY p99_ps DESC, name LIMIT 5;

-- How often ops run in each step
SELECT step, core, count(*) AS n FROM events
  WHERE name LIKE 'all-reduce%' GROUP BY step, core ORDER BY step, core;

-- The longest step of each core
SELECT core, max(duration_ms) AS longest_ms FROM steps
  GROUP BY core ORDER BY core;

-- Steps longer than 1.2 times the median
SELECT name, core, duration_ms FROM steps
  WHERE duration_ms > 1.2 * (SELECT median(duration_ms) FROM steps);

-- Self time by source file
SELECT substr(source, 1, instr(source, ':') - 1) AS file,
  sum(self_time_ps) / 1e9 AS ms FROM ops GROUP BY file ORDER BY ms DESC;

-- The largest buffers, with their ops
SELECT b.name, b.size_bytes, o.self_time_ps
  FROM buffers b LEFT JOIN ops o ON o.name = b.name AND o.program = b.module
  WHERE b.at_peak ORDER BY b.size_bytes DESC, b.name LIMIT 5;

-- Collectives that no compute hides
SELECT name, axis, exposed_time_ms FROM collectives
  WHERE exposed_time_ms > 1 ORDER BY exposed_time_ms DESC;

-- What ran in an interval
SELECT core, name, duration_ps FROM events
  WHERE start_ps BETWEEN 400e9 AND 401e9 AND core IS NOT NULL
  ORDER BY start_ps, core, depth, name;
