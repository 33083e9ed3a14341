"""Recursion: each query on the engine, from scratch, and as an incremental program by hand."""
