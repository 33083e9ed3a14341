"""Grammars to parse with."""
