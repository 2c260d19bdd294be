"""Performance counters: what a program uses of the machine, unit by unit, and the counters themselves."""
