"""The page of SparseCores."""
