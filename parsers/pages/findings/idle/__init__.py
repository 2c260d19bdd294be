"""Findings about an idle device: it waits for input, for the host, for the compiler, or for requests."""
