"""XSpace files: planes, lines, events and their metadata as columns."""
