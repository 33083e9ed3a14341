"""Recursive relations, maintained by delta rules that derive their rows."""
