"""Findings about programs without TPUs: on the CPU of the hosts, and on GPUs."""
