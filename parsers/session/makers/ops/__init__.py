"""How the pages of ops are made."""
