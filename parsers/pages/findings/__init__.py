"""Findings: why a program is slow."""
