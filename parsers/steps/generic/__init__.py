"""Steps of GPUs and of the host's CPU: XProf's generic step breakdown."""
