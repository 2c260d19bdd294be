"""What each command takes: parsers of its arguments, which load nothing that reads a profile or draws one."""
