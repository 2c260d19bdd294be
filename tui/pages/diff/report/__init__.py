"""Reports of two runs compared."""
