"""System tables and functions that clients ask, and the path of schemas; each file when asked."""
