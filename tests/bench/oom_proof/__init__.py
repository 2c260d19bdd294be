"""Programs that run out of memory, and the compiler as the judge of the advice: ``python -m tests.bench.oom_proof``."""
