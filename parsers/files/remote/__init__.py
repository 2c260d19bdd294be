"""Profiles in buckets and on web servers: addresses, listings, and a cache of what was read."""
