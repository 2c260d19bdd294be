"""Hosts that other processes read."""
