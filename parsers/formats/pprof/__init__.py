"""pprof profiles: what JAX writes of device memory, and what other profilers write of other things."""
