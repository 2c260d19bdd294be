"""Tests of one op: its card, and the report on it."""
