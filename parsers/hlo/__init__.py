"""Compiled HLO modules that a profile carries: shapes with their padding, instructions, matrix work."""
