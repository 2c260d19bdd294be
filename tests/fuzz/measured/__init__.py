"""What fuzzing measures of each reader: memory and time of the worst inputs, and the branches that it reaches."""
