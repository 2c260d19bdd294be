"""Lists, and what shows one: a tab, a screen or a popup."""
