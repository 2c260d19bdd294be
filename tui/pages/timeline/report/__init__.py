"""Reports of the timeline."""
