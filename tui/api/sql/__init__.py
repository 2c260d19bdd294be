"""SQL over a profile: its tables, and a query that can neither write, nor read files, nor run on for ever."""
