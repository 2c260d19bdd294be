"""Pages as HTML: one file that asks the network for nothing and runs no script."""
