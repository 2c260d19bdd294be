"""Kernels: those of GPUs by their launches, and those that TPUs run as custom calls."""
