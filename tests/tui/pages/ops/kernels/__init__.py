"""Tests of kernels on the ops tab."""
