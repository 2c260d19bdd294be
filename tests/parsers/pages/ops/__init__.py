"""Tests of the op pages."""
