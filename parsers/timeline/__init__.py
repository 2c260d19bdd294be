"""A host's profile on one time axis: tracks of events as columns, and what is drawn, found and measured on them."""
