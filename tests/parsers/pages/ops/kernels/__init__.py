"""Tests of the pages of kernels."""
