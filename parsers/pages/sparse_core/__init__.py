"""SparseCores: what one host adds, and the page."""
