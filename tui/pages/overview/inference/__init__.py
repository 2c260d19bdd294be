"""Latencies of programs that serve."""
