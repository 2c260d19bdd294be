"""Wire formats: our own minimal .proto files and the modules generated from them."""
