"""What two runs are compared by besides times: memory, versions and flags."""
