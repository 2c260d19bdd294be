"""Kernels of TPUs: the view and the report."""
