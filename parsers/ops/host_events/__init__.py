"""Events and ops of the host, and its input pipeline."""
