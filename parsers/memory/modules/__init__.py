"""Memory of a compiled module: buffers, heap, peaks, from its HLO's buffer assignment."""
