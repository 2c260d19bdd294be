"""Hostile input for every reader: what the command line does with it must hold whatever the bytes are.

`python -m tests.fuzz --minutes 60 --asan` runs all targets; the suite runs a few inputs of each, and all past failures.
"""
