"""What of a device's peak a model uses, and which of its blocks and layers have the time."""
