"""One module a page, each a pure function from a trace to a frozen dataclass."""
