"""What a shell wants to know of the command line: what completes it, its version."""
