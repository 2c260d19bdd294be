"""Steps: markers, times, where the time of each went, duty cycle."""
