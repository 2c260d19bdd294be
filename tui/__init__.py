"""Draws pages in cells: the screen, reports, the command line."""
