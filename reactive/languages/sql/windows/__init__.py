"""Window functions as they are written: what is asked of the rows of a partition."""
