"""The pages as text, JSON, CSV and Markdown."""
