"""The graph of a compiled module around an op, and its text."""
