"""The command `doctor`: what is installed, what the terminal can do, what servers and profiles are like."""
