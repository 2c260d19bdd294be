"""The page of SparseCores: what they do beside the TensorCores, and who waits."""
