"""The quantities of the memory pages."""
