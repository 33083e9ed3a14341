"""SQL text to trees, and a script to its statements."""
