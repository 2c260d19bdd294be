"""Out-of-memory triage."""
