"""The Python API: what `import tpuprof` offers. It reads the same sessions, and gives the same figures, as reports."""
