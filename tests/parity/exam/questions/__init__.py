"""The questions, by what they are about."""
