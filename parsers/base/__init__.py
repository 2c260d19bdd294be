"""The ground: errors, text, intervals, classes of ops."""
