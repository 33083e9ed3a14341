"""What people would use instead: the same queries by recomputation, and in a streaming engine."""
