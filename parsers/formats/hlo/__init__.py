"""HLO modules: files, instructions, shapes, matrix products."""
