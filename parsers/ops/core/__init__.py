"""Ops of one core: which event is of which op, what they add up to, and when the core worked."""
