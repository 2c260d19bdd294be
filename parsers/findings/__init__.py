"""Why is it slow? What costs a program time, what each of it is worth, and where to look."""
