"""What to do about a program that does not fit, and what each change saves."""
