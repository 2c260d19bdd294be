"""Steps and ops of GPUs."""
