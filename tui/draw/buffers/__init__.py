"""What pages on memory draw buffers with: words, fills."""
