"""The quantities of the op pages."""
