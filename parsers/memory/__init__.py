"""Memory of compiled modules and of allocators, and out-of-memory errors."""
