"""The command `oom`: the errors of a log, and the files that help to read them."""
