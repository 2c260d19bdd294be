"""Collectives: what moves data between cores, how long, and what of that the cores compute meanwhile."""
