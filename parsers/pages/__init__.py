"""Pages: a frozen dataclass and a pure function each."""
