"""Findings about what the cores compute and move: groups of ops far below what the device can do."""
