"""The profiler's client: captures a profile from a running program."""
