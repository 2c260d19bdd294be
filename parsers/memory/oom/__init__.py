"""Out-of-memory errors: from a log or a module to what to do."""
