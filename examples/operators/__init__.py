"""Operators of one's own: an approximate counter, and a join of points within a distance."""
