"""How a compiled module's memory grows with its batch, and the largest batch that fits."""
