"""The command `capture`: once, or again and again."""
