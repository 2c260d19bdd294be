"""Two runs compared."""
