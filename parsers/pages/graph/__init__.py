"""The graph of a compiled module around one op: what it takes, what uses it, and what that answers."""
