"""The commands `diff` and `verify`, of two runs."""
