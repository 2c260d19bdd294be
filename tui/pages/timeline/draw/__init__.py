"""Draws the timeline."""
