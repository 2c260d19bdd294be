"""Reports of out-of-memory triage."""
