"""The decoding core: one contract, in C and in numpy."""
