"""Window functions of SQL texts: the functions and frames to compute in each partition."""
