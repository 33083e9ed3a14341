"""Kinds of values over each border, and back."""
