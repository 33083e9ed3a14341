"""Trees of flat relations."""
