"""Reads profiles and computes pages: no terminal, no screen. Usable as a library."""
