"""The page that compares hosts."""
