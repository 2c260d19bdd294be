"""Findings about bytes that need not move: what is read or written again, larger than needed, or as a whole."""
