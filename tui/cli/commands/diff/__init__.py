"""The command `diff`: of two runs, or of two device memory profiles."""
