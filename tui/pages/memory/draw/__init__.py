"""Draws the memory pages."""
