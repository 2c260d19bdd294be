"""Real programs: JAX on the CPU, each with one fault that its script plants, captured in every way that we offer."""
