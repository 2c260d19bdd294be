"""Writers of the files that the readers are tested on."""
