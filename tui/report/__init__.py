"""Reports without a screen: writers of JSON, CSV, Markdown and text."""
