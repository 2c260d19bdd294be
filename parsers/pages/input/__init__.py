"""The input pipeline page."""
