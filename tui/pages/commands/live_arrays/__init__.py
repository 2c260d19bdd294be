"""Live arrays: who holds device memory, and what grew from one time to another."""
