"""Memory over time, as the allocators reported it."""
