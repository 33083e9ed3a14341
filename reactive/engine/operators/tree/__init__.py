"""Nests as trees of flat relations, whose rows are made when they are read."""
