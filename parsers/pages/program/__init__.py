"""What a compiled program says of itself, run or not."""
