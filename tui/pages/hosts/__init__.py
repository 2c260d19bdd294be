"""Hosts of a run compared."""
