"""Finds and reads out-of-memory errors in logs."""
