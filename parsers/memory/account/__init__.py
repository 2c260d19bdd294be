"""One account of memory: whose each byte at the peak is, of a compiled module or of an error's text."""
