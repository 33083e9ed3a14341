"""Analyses of programs over lattices, live: signs, points-to, available expressions, prefixes."""
