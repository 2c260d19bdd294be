"""Where profiles lie: log folders, runs, host files, and what comes new."""
