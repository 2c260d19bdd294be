"""Performance counters: how each execution unit, and each way to memory, was used while it was sampled."""
