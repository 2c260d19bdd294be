"""Reports of the op pages."""
