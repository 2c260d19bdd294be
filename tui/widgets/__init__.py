"""Widgets on the line API of Textual."""
