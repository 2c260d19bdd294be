"""The compiled core, built to watch its memory, to lack memory, and to count its branches."""
