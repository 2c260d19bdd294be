"""The timeline in cells: rows of slices, graphs, axis, minimap and the facts of an event, a function a line."""
