"""Hosts that other processes read: a pool of them here, or the workers of a Dask scheduler."""
