"""The programs, a script each; each is run as a module with a folder, in an interpreter that has JAX."""
