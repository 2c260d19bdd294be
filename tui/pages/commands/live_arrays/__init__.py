"""Live arrays: who holds device memory."""
