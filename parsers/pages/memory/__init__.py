"""The memory of compiled modules, and of allocators over time."""
