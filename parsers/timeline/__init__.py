"""The timeline: tracks, windows, search, measuring."""
