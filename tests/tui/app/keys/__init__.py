"""What keys do: the grammar, and what holds for every key of every page."""
