"""Draws two runs compared."""
