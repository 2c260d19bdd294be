"""Ops of GPUs and of the host's CPU: which op each event of a stream or thread belongs to, and what they add up to."""
