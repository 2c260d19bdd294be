"""When a core is in a step, and when it is on duty: spans of markers, of modules and of SparseCores."""
