"""How long views take, by hand."""
