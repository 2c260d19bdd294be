"""What one host adds to the pages, and the workers that read hosts side by side."""
