"""Pages with a command of their own: two runs compared, an out-of-memory log, live arrays."""
