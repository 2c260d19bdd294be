"""Memory of modules and allocators."""
