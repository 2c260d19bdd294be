"""The page of performance counters."""
