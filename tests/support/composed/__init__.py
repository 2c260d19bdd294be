"""Profiles composed plane by plane, as XProf's source describes what no real profile at hand has."""
