"""What two runs are compared by besides their times: memory, versions and flags, and further launches."""
