"""Pages on the screen and in reports: a folder each."""
