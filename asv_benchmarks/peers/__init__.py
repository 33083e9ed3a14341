"""Alternatives to the library: the same queries by recomputation, and in a streaming engine."""
