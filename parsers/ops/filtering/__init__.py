"""The language that filters tables."""
