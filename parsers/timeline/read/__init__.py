"""Makes the tracks of a timeline from a trace."""
