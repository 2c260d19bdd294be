"""The bundled demo profile."""
