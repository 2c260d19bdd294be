"""The front ends: a Textual screen and headless reports over the same pages."""
