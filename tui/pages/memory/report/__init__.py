"""Reports of the memory pages."""
