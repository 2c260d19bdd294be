"""The page of collectives."""
