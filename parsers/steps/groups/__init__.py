"""Groups of events: which launch led to which work."""
