"""What pages on memory draw buffers with: sizes, words, fills."""
