"""Chrome traces in JSON, as XProf, JAX and this program write them: read as the profile they were made from."""
