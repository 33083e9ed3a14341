"""Nests as trees of flat relations, whose rows are computed when they are read."""
