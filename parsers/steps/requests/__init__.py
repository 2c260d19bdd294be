"""Requests and module runs of programs that serve."""
