"""What a front end holds: one run, its pages on demand."""
