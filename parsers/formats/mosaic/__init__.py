"""Mosaic modules: what a Pallas kernel for a TPU is, and what it must do at least by its shapes."""
