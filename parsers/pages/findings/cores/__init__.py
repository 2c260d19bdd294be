"""Findings about cores that wait for each other."""
