"""The command doctor: what is installed, what the terminal can do, what a path holds."""
