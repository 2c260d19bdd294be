"""How the pages of memory and of graphs are made."""
