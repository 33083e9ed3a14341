"""Growth of the work with the size of its input."""
