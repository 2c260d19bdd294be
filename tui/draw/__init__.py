"""What several pages draw with: spans, layout, tables, bars, axes. No Textual."""
