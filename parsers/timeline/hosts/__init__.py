"""Several hosts on one time axis: their clocks aligned, their timelines put together."""
