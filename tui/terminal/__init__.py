"""The terminal: what it can do, colours, clipboard, editor."""
