"""The command `watch`: a flight recorder that keeps the seconds in which a step got slow."""
