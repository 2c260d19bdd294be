"""Draws out-of-memory triage."""
